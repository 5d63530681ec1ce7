"""Make NRA's figure of digits in the plane, record its measures, and fill the page about it.

python benchmarks/plane.py --root MNIST --out plane     flags as of nearkin plane; what is trained already is only read

NRA is also trained with all ten digits in every batch, for a quarter of the steps and for all of them, into ten-digits.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path

from harness import ROOT, conditions, fill, write

from nearkin import config
from nearkin.plane.command import Plane, make
from nearkin.plane.runs import LOSSES
from nearkin.plane.show import table

PLACES = ("root", "out", "packs", "data_settings")  # folders of this machine tell others nothing
FIGURES = ROOT / "docs" / "figures"
PAGE = ROOT / "docs" / "plane.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    config.add_flags(parser, Plane)
    command = Plane(**config.given(Plane, vars(parser.parse_args())))
    where = conditions()
    where["command"] = "python benchmarks/plane.py --root MNIST --out plane"
    where["threads"] = command.threads or where["threads"]
    found = make(command)
    shutil.copyfile(Path(command.out) / "plane.svg", FIGURES / "plane.svg")
    ten = dataclasses.replace(command, losses="nra", classes=10, out=str(Path(command.out) / "ten-digits"))
    late = make(ten)["nra"]
    early = make(dataclasses.replace(ten, iterations=command.iterations // 4))["nra"]
    shutil.copyfile(Path(ten.out) / "plane.svg", FIGURES / "plane-ten-digits.svg")
    settings = {key: value for key, value in dataclasses.asdict(command).items() if key not in PLACES}
    kept = {"conditions": where, "settings": settings, "losses": found, "ten_digits": {"early": early, "late": late}}
    write("plane.json", kept)
    tables = {
        "plane": table({LOSSES[name].title: entries for name, entries in found.items()}),
        "plane-ten-digits": table({"NRA, 5,000 steps": early, "NRA, 20,000 steps": late}),
    }
    for mark, shown in tables.items():
        fill(PAGE, mark, f"```\n{shown}\n```")
        print(shown)


if __name__ == "__main__":
    main()
