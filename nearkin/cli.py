"""The command line: one line per command. A command is a frozen dataclass whose fields are its flags, and a function."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import dataclasses
import difflib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Container, Sequence
from typing import Any, NoReturn

from nearkin import __version__, config, limits
from nearkin.train.stop import Terminated

INTERRUPTED, TERMINATED = 130, 143

Function = Callable[[Any], int | None]
Loader = Callable[[], tuple[type, Function]]


def _demo() -> tuple[type, Function]:
    from nearkin.demo import Demo, run

    return Demo, run


def _losses() -> tuple[type, Function]:
    return Nothing, losses


def _train() -> tuple[type, Function]:
    from nearkin.train.command import Command, run

    return Command, run


def _evaluate() -> tuple[type, Function]:
    from nearkin.train.evaluate import Evaluate, run

    return Evaluate, run


def _embed() -> tuple[type, Function]:
    from nearkin.train.embed import Embed, run

    return Embed, run


def _data_get() -> tuple[type, Function]:
    from nearkin.data import commands

    return commands.Get, commands.get


def _data_info() -> tuple[type, Function]:
    from nearkin.data import commands

    return commands.Info, commands.info


def _data_check() -> tuple[type, Function]:
    from nearkin.data.doctor.command import Check, check

    return Check, check


def _export() -> tuple[type, Function]:
    from nearkin.export.command import Export, run

    return Export, run


def _index(name: str) -> Loader:
    """A command of the index by the name of its function; its settings have the same name with a capital."""

    def loader() -> tuple[type, Function]:
        from nearkin.index import command

        return getattr(command, name.capitalize()), getattr(command, name)

    return loader


def _approximate() -> tuple[type, Function]:
    from nearkin.index import command

    return command.Graph, command.approximate


def _serve() -> tuple[type, Function]:
    from nearkin.serve.command import Serve, run

    return Serve, run


def _bench() -> tuple[type, Function]:
    from nearkin.benchmark import command

    return command.Bench, command.run


def _bench_status() -> tuple[type, Function]:
    from nearkin.benchmark import command

    return command.Status, command.status


def _bench_rebuild() -> tuple[type, Function]:
    from nearkin.benchmark import command

    return command.Rebuild, command.rebuild_results


def _report() -> tuple[type, Function]:
    from nearkin.report.command import Report, run

    return Report, run


def _plane() -> tuple[type, Function]:
    from nearkin.plane.command import Plane, run

    return Plane, run


def _published() -> tuple[type, Function]:
    from nearkin.published.command import Published, run

    return Published, run


def _tune() -> tuple[type, Function]:
    from nearkin.tune.command import Command, run

    return Command, run


def _tournament() -> tuple[type, Function]:
    from nearkin.tournament.command import Tournament, run

    return Tournament, run


# What a person types, what it does, and where to find it; nothing is imported before it is asked for.
COMMANDS: dict[str, tuple[str, Loader]] = {
    "demo": ("Learn to tell unseen characters apart, on the CPU, in under two minutes; then search them.", _demo),
    "train": ("Train an embedding: any data set, network, loss and recipe.", _train),
    "eval": ("Measure the embedding of a run on its test set.", _evaluate),
    "embed": ("Turn a folder of images into vectors with a trained run.", _embed),
    "data get": ("Download a benchmark, verify and unpack it.", _data_get),
    "data info": ("Describe what lies at a path.", _data_info),
    "data check": ("Find broken, doubled, mislabelled-looking and odd images.", _data_check),
    "export": ("Take a trained model away: ONNX, or safetensors with a card.", _export),
    "index build": ("Embed a folder of images and make it searchable.", _index("build")),
    "index add": ("Add a folder to an index; only new and changed files are embedded.", _index("add")),
    "index remove": ("Take images out of an index.", _index("remove")),
    "index info": ("What an index holds.", _index("info")),
    "index search": ("Find the images that look most like one.", _index("search")),
    "index approximate": ("Build a graph for faster search of a large index.", _approximate),
    "index export": ("Copy an index to Parquet, LanceDB, Qdrant or PostgreSQL.", _index("export")),
    "serve": ("Search an index, see it as a map and examine it, in the browser.", _serve),
    "tune": ("Search for the settings of each loss on validation classes.", _tune),
    "bench": ("Compare losses: every run of a grid, each once.", _bench),
    "bench status": ("How far a benchmark is.", _bench_status),
    "bench rebuild": ("Make the results of a benchmark again from its runs.", _bench_rebuild),
    "tournament": ("Which loss wins, and is it more than chance.", _tournament),
    "report": ("Write one page that shows which loss is best, with figures and tables.", _report),
    "plane": ("Handwritten digits in the plane: NRA's figure, measured.", _plane),
    "published": ("Show the published results of every loss, table by table.", _published),
    "losses": ("List every loss and what it does.", _losses),
}


# What somebody may call a command by, and its name.
OTHER_NAMES = {"doctor": "data check", "check": "data check", "evaluate": "eval", "search": "index search"}


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A command without flags."""


def losses(settings: Nothing) -> None:
    """List every loss and what it does."""
    from nearkin import losses as table

    for name in table.names():
        cls = table.LOSSES[name]
        first = (cls.__doc__ or "").strip().splitlines()[0]
        alias = f" (the same as {cls.name})" if name != cls.name else ""
        kind = "proxies" if issubclass(cls, table.ProxyLoss) else "pairs"
        print(f"{name:20s} {kind:8s} {first}{alias}")


class Wide(argparse.RawDescriptionHelpFormatter):
    """Help with room for the names of commands and flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(100, shutil.get_terminal_size().columns - 2))


class Parser(argparse.ArgumentParser):
    """Flags whose mistakes are one sentence, like all others, and not a page of usage before it."""

    def flags(self, words: Sequence[str]) -> dict[str, Any]:
        """What the words say; a misspelt flag is answered with the nearest right one."""
        parsed, left = self.parse_known_args(words)
        for word in left:
            if word.startswith("--"):
                _of_a_loss(word, self._option_string_actions)
                raise ValueError(limits.unknown("flag", word.split("=")[0], self._option_string_actions))
        if left:
            _of_a_group(self.prog.removeprefix("nearkin "), words)
            self.error(f"{left[0]!r} was not expected")
        return vars(parsed)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message}; see {self.prog} --help.")


def _of_a_group(name: str, words: Sequence[str]) -> None:
    """Raise where what should be a value is nearly the second word of a command, such as ``status`` of ``bench status``."""
    below = [command.removeprefix(f"{name} ") for command in COMMANDS if command.startswith(f"{name} ")]
    if meant := difflib.get_close_matches(words[0], below, n=1, cutoff=0.7):
        raise ValueError(f"command {f'{name} {words[0]}'!r} is not known; did you mean {f'{name} {meant[0]}'!r}?")


def _of_a_loss(word: str, flags: Container[str]) -> None:
    """Raise with the way to write it where a flag that is none is a setting of losses."""
    if "--loss-settings" not in flags:
        return
    from nearkin import losses

    flag, _, value = word.partition("=")
    key = flag.lstrip("-").replace("-", "_")
    if any(key in losses.settings_of(name) for name in losses.LOSSES):
        raise ValueError(f"{flag} is a setting of losses; write --loss-settings {key}={value or 'VALUE'}.")


def overview(group: str = "") -> argparse.ArgumentParser:
    """The help of nearkin, or of a group of commands such as ``data``."""
    program = f"nearkin {group}".strip()
    top = argparse.ArgumentParser(
        prog=program, description="Learns an embedding in which neighbours are kin.", formatter_class=Wide
    )
    if not group:
        top.add_argument("--version", action="version", version=f"nearkin {__version__}")
    below = top.add_subparsers(metavar="COMMAND", title="commands", description=f"{program} COMMAND --help says more.")
    for name, (text, _) in COMMANDS.items():
        if name.startswith(f"{group} ".lstrip()):
            below.add_parser(name.removeprefix(group).strip(), help=text)
    return top


def find(words: Sequence[str]) -> str | None:
    """The command that the first one or two words name."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error is one sentence on standard error and exit code 2, an interruption exit code 130,
    or 143 where it came as SIGTERM.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = find(words)
    if name is None:
        return _no_command(words)
    text, loader = COMMANDS[name]
    try:
        kind, function = loader()
        parser = Parser(
            prog=f"nearkin {name}",
            description=(function.__doc__ or text).strip(),
            formatter_class=Wide,
        )
        config.add_flags(parser, kind)
        parsed = config.given(kind, parser.flags(words[len(name.split()) :]))
        build = getattr(kind, "from_flags", None)
        return function(build(parsed) if build else kind(**parsed)) or 0
    except (ValueError, TypeError, ImportError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"nearkin {name}: {_without_command(str(error), name)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nnearkin {name}: {str(stop) or 'interrupted.'}", file=sys.stderr)
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _without_command(sentence: str, name: str) -> str:
    """A sentence without the command that some begin with: all of its name, or one word of it.

    >>> _without_command("index search: k must be ...", "index search"), _without_command("check: ...", "data check")
    ('k must be ...', '...')
    """
    owner = next((word for word in (name, *name.split()) if sentence.startswith(f"{word}: ")), "")
    return sentence.removeprefix(f"{owner}: ")


def entry() -> NoReturn:
    """The command as a process: when it ends, everything ends.

    A thread that works in the background, such as one that lays out a map, may be inside a compiled library; taken down
    with the interpreter it would abort the process with a message that says nothing to anybody.
    """
    code = main()
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    if any(thread.daemon for thread in others):
        for thread in others:
            if not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # a reader that is gone
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _no_command(words: list[str]) -> int:
    """Help, the version, or a misspelt command."""
    groups = {name.split()[0] for name in COMMANDS if " " in name}
    if words and words[0] in groups:
        rest = [word for word in words[1:] if not word.startswith("-")]
        if rest:
            known = [name for name in COMMANDS if name.startswith(words[0] + " ")]
            print(f"nearkin: {limits.unknown('command', ' '.join([words[0], rest[0]]), known)}", file=sys.stderr)
            return 2
        overview(words[0]).print_help()
        return 0
    if words and words[0] in OTHER_NAMES:
        meant = OTHER_NAMES[words[0]]
        print(f"nearkin: command {words[0]!r} is not known; did you mean {meant!r}?", file=sys.stderr)
        return 2
    if words and not words[0].startswith("-"):
        print(f"nearkin: {limits.unknown('command', words[0], {*COMMANDS, *groups})}", file=sys.stderr)
        return 2
    if words:
        overview().parse_args(words)
    overview().print_help()
    return 0
