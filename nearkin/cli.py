"""The command line: one short function per command. A command is a frozen dataclass whose fields are its flags."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from nearkin import __version__, checks

INTERRUPTED = 130


def demo(settings: Any) -> None:
    """Learn to tell unseen characters apart, on the CPU, in about a minute."""
    from nearkin.demo import run

    run(settings)


def losses(settings: Any) -> None:
    """List every loss, what it does and its settings."""
    from nearkin import losses as table

    for name in table.names():
        cls = table.LOSSES[name]
        first = (cls.__doc__ or "").strip().splitlines()[0]
        alias = f" (the same as {cls.name})" if name != cls.name else ""
        kind = "proxies" if issubclass(cls, table.ProxyLoss) else "pairs"
        print(f"{name:20s} {kind:8s} {first}{alias}")


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A command without flags."""


def commands() -> dict[str, tuple[type, Callable[[Any], None]]]:
    """Every command: the dataclass of its flags, and the function that runs it."""
    from nearkin.demo import Demo

    return {"demo": (Demo, demo), "losses": (Nothing, losses)}


def parser(table: dict[str, tuple[type, Callable[[Any], None]]]) -> argparse.ArgumentParser:
    """Flags from the fields of each command's dataclass, help from their metadata."""
    top = argparse.ArgumentParser(prog="nearkin", description="Learns an embedding in which neighbours are kin.")
    top.add_argument("--version", action="version", version=f"nearkin {__version__}")
    below = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (settings, function) in table.items():
        text = (function.__doc__ or "").strip()
        command = below.add_parser(
            name, help=text.splitlines()[0], description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        for field in dataclasses.fields(settings):
            command.add_argument(
                "--" + field.name.replace("_", "-"), type=field.metadata["type"], default=field.default,
                metavar=field.name[0].upper(), help=field.metadata["help"],
            )  # fmt: skip
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one sentence on standard error and exit code 2, an interruption exit code 130."""
    table = commands()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and not given[0].startswith("-") and given[0] not in table:
        print(f"nearkin: {checks.unknown('command', given[0], table)}", file=sys.stderr)
        return 2
    parsed = vars(parser(table).parse_args(given))
    name = parsed.pop("command")
    if name is None:
        parser(table).print_help()
        return 0
    settings, function = table[name]
    try:
        function(settings(**parsed))
    except (ValueError, TypeError, ImportError) as error:
        print(f"nearkin {name}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print(f"\nnearkin {name}: interrupted.", file=sys.stderr)
        return INTERRUPTED
    return 0
