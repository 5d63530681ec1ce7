"""Run the demonstration, record its table and time, and fill the table of the README.

python benchmarks/demo.py     writes benchmarks/results/demo.json
"""

from __future__ import annotations

import dataclasses

from harness import ROOT, conditions, fill, write

from nearkin.demo import MEASURES, Demo, rows


def main() -> None:
    where, settings = conditions(), Demo()
    found, _, _, seconds = rows(settings)
    seconds = round(seconds, 1)
    where["threads"] = settings.threads
    write(
        "demo.json", {"conditions": where, "settings": dataclasses.asdict(settings), "seconds": seconds, "rows": found}
    )
    text = ["| unseen characters | " + " | ".join(MEASURES.values()) + " |", "|---|" + "---:|" * len(MEASURES)]
    for name, row in found.items():
        text.append(f"| {name} | " + " | ".join(f"{100 * row[key]:.1f}" for key in MEASURES) + " |")
    text += [
        "",
        f"{seconds:.0f} s in all on one thread of {where['device']}, torch {where['versions']['torch']}, commit "
        f"{where['commit']}, `{where['command']}`.",
    ]
    fill(ROOT / "README.md", "demo", "\n".join(text))


if __name__ == "__main__":
    main()
