"""The page over an index: a local server that searches, shows and examines it. ``nearkin serve my.index`` starts it.

``application.app(index)`` is the server as an ASGI application; nothing here is imported before it is asked for.
"""
