"""What a terminal shows is what was said."""

from __future__ import annotations

from nearkin.train.screen import Terminal


def test_brackets_are_shown() -> None:
    """They mean something to what draws the terminal."""
    screen = Terminal()
    try:
        with screen.console.capture() as shown:
            screen.say("[/x] [red]")
            with screen.job("[/x] [red]"):
                screen.console.print(screen.bars)
    finally:
        screen.close()
    assert shown.get().count("[/x] [red]") == 2
