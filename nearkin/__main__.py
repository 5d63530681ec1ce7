"""``python -m nearkin`` is ``nearkin``."""

from nearkin.cli import entry

if __name__ == "__main__":
    entry()
