"""The GPU part of docs/performance.md, tables and figures, from the results files that are there.

python benchmarks/gpu_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from batches import told
from harness import RESULTS, ROOT, fill
from marked import marked
from plots import LOOKS, OTHER, panels

PAGE = ROOT / "docs" / "performance.md"
FIGURES = ROOT / "docs" / "figures"
PRECISIONS = {"highest": "float32", "high": "tf32"}
"""What matrices are multiplied in, by torch's word for it."""
MILLION = 10**6
"""Vectors of the evaluation that the README tells of."""


def results(name: str) -> dict[str, Any]:
    path = RESULTS / name
    return dict(json.loads(path.read_text())) if path.exists() else {}


def measured(part: dict[str, Any], rows: list[tuple[str, dict[str, Any]]] | None = None) -> str:
    """On what and how a part was measured; ``rows`` with what they are called, if not by loss and size."""
    on = part["conditions"]
    library = on["versions"]["pytorch-metric-learning"]
    versions = f"torch {on['versions']['torch']}" + (
        "" if library == "not installed" else f", pytorch-metric-learning {library}"
    )
    note = f" ({part['note']})" if "note" in part else ""
    if rows is None:
        rows = [(called(row), row) for row in part.get("rows", [])]
    older: dict[str, list[str]] = {}
    for name, row in rows:
        if "conditions" in row:
            before = row["conditions"]
            at = f"at commit {before['commit']}, {before['date']}: `{before['command']}`"
            older.setdefault(at, []).append(name)
    rest = "".join(f" Measured before that, {at}: {', '.join(names)}." for at, names in older.items())
    return (
        f"Measured on {on['device']}, {versions}, commit {on['commit']}, {on['date']}: `{on['command']}`{note}.{rest}"
    )


def called(row: dict[str, Any]) -> str:
    return f"{row['loss']} {row['n']:,}" + (f" ({PRECISIONS[row['precision']]})" if "precision" in row else "")


def milliseconds(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    return f"{found['median']:.2f}" if "median" in found else str(found["unfinished"])


def mebibytes(found: dict[str, Any] | None) -> str:
    return f"{found['bytes'] / 2**20:,.0f}" if found and "bytes" in found else ""


def ratio(one: dict[str, Any] | None, other: dict[str, Any] | None, key: str, digits: int) -> str:
    if not one or not other or key not in one or key not in other:
        return ""
    return f"{one[key] / other[key]:,.{digits}f}"


def side_by_side(part: dict[str, Any]) -> list[str]:
    """Ours, theirs and the bare matrix products."""
    lines = [
        "| loss | n | products, ms | nearkin, ms | over products | theirs, ms | times faster "
        "| nearkin, MiB | theirs, MiB | times leaner |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in part["rows"]:
        ours, theirs = row.get("compiled", {"unfinished": ""}), row.get("theirs")
        over = f"{ours['median'] / row['bare']:.2f}" if "median" in ours else ""
        cells = [
            row["loss"], f"{row['n']:,}", f"{row['bare']:.2f} ({row['products']})", milliseconds(ours), over,
            milliseconds(theirs), ratio(theirs, ours, "median", 1), mebibytes(ours), mebibytes(theirs),
            ratio(theirs, ours, "bytes", 0),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", measured(part), ""]


def small(part: dict[str, Any]) -> list[str]:
    names = [name for name in ("auto", "compiled", "dense", "theirs") if any(name in row for row in part["rows"])]
    lines = [f"| loss | n | {' | '.join(f'{name}, ms' for name in names)} |", "|---|---:|" + "---:|" * len(names)]
    for row in part["rows"]:
        cells = [milliseconds(row.get(name)) for name in names]
        lines.append(f"| {' | '.join([row['loss'], str(row['n']), *cells])} |")
    return [*lines, "", measured(part), ""]


def also(part: dict[str, Any]) -> str:
    """Whether what "auto" chose was recorded when it was measured."""
    every = all(row.get("auto", {}).get("recorded") for row in part["rows"])
    return ", and recorded too" if every else ", and was not recorded when this was measured"


def exact(part: dict[str, Any]) -> list[str]:
    several = any("precision" in row for row in part["rows"])
    lines = [
        f"| loss | n |{' products |' if several else ''} value, nearkin | value, plain torch | gradient, nearkin "
        "| gradient, plain torch | same bits twice |",
        f"|---|---:|{'---|' if several else ''}---:|---:|---:|---:|---|",
    ]
    for row in part["rows"]:
        kind = [PRECISIONS[row["precision"]]] if several else []
        errors = [f"{row[name][kind]:.1e}" for kind in ("value", "gradient") for name in ("compiled", "plain")]
        cells = [row["loss"], f"{row['n']:,}", *kind, *errors, "yes" if row["same bits"] else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", measured(part), ""]


def losses_page(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if "large" in found:
        lines += side_by_side(found["large"])
    if "huge" in found:
        lines += ["Larger than any other library can hold:", "", *side_by_side(found["huge"])]
    if "sizes" in found:
        curves(found["sizes"])
        lines += [
            "![Time of four losses against the size of the batch](figures/engine-cuda-time.svg)",
            "",
            "![Memory of the same losses](figures/engine-cuda-memory.svg)",
            "",
            measured(found["sizes"]),
            "",
        ]
    if "small" in found:
        lines += [
            "A batch as most people train with it. *compiled* records the whole call, forward and backward, and replays it; "
            f"what is left is the host's. *auto* is dense there, which compiles nothing{also(found['small'])}.",
            "",
            *small(found["small"]),
        ]
    if "exact" in found:
        lines += [
            "How exact: root of the mean square of relative errors over several batches, against float64, beside plain "
            "torch that multiplies in bfloat16 and does the rest in float32. From 8,192 on inner products are rounded to 16 "
            "bits, as plain torch rounds them; those of proxy_anchor, which has a quarter of the columns, from 16,384 on.",
            "",
            *exact(found["exact"]),
        ]
    if "exact_large" in found:
        lines += ["Larger, where proxy_anchor goes through the samples twice:", "", *exact(found["exact_large"])]
    if "exact_float32" in found:
        lines += [
            "Batches in float32, which both multiply as they are or, told to be quick, in tf32:",
            "",
            *exact(found["exact_float32"]),
        ]
    before = told([row for part in found for row in found[part]["rows"] if part != "profile"])
    return [*lines, before, ""] if before else lines


def curves(part: dict[str, Any]) -> None:
    """Time and memory against the size of the batch."""
    times: dict[str, dict[str, list[tuple[float, float]]]] = {}
    memory: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in part["rows"]:
        lines = times.setdefault(row["loss"], {name: [] for name in LOOKS})
        bytes_ = memory.setdefault(row["loss"], {name: [] for name in LOOKS})
        lines["bare matrix products"].append((row["n"], row["bare"]))
        if row.get("bare bytes"):
            bytes_["bare matrix products"].append((row["n"], row["bare bytes"] / 2**20))
        for name, key in (("nearkin", "compiled"), (OTHER, "theirs")):
            got = row.get(key) or {}
            if "median" in got:
                lines[name].append((row["n"], got["median"]))
                bytes_[name].append((row["n"], got["bytes"] / 2**20))
    title = f"Forward and backward, 512 dimensions, bfloat16, {part['conditions']['device']}"
    panels(times, title, "milliseconds", FIGURES / "engine-cuda-time.svg")
    panels(memory, "Memory above inputs and gradient", "MiB", FIGURES / "engine-cuda-memory.svg")


def training_page(found: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    rates: dict[str, float] = {}
    if "share" in found:
        part = found["share"]
        rates |= {name: sorted(values)[len(values) // 2] for name, values in part["images_per_second"].items()}
        pack, ready = rates["from the pack"], rates["ready crops"]
        lines += [
            f"`nearkin train` on CUB-200-2011 from the pack: {pack:,.0f} images/s with batches of {part['batch']}, "
            f"**{100 * part['share']:.2f}%** of the same step on crops that lie ready on the GPU ({ready:,.0f}). "
            f"{measured(part)}",
            "",
        ]
    if "cached" in found:
        part = found["cached"]
        chunks = {name: rate for name, rate in part["images_per_second"].items() if "at once" in name}
        rates |= chunks
        plain = part["images_per_second"]["steps of 120"]
        costs = ", ".join(f"{name.split(', ')[-1]} {100 * (plain / rate - 1):.0f}%" for name, rate in chunks.items())
        lines += [
            f"All training images as one ranked list by gradient caching cost **{100 * part['overhead']:.0f}%** more per "
            f"image than steps of 120, with the best of the chunks ({costs}). One forward pass more is 33% of the work; "
            f"large chunks win some of it back, the kernels of small ones are launched one by one. {measured(part)}",
            "",
        ]
    if rates:
        bars(rates, FIGURES / "training-cuda-rate.svg")
        lines += ["![Images a second of each way to feed the step](figures/training-cuda-rate.svg)", ""]
    if "reach" in found:
        part = found["reach"]
        record = f"recording the network's kernels ({part['recording']:.1f} s)" if "recording" in part else ""
        left_out = f"{record}, measuring" if record else "measuring"
        left_out += " and what the parts before it had compiled are"
        if "compilation" in part:
            compiled = f"compilation ({part['compilation']:.1f} s, nothing being compiled before)"
            left_out = f"{', '.join(filter(None, (compiled, record)))} and measuring are"
        reached = "not reached" if part["seconds"] is None else f"reached after **{part['seconds']:.1f} s**"
        lines += [
            f"R@1 {100 * part['goal']:.0f} on the test classes of CUB-200-2011 (ResNet-50, 512 dimensions, proxy_anchor), "
            f"measured after every epoch (test_feedback), is {reached} of training; {left_out} not "
            f"counted. {measured(part)}",
            "",
            "![R@1 against seconds of training](figures/training-cuda-reach.svg)",
            "",
        ]
        reach(part, FIGURES / "training-cuda-reach.svg")
    if "profile" in found:
        part = found["profile"]
        total = sum(part["milliseconds"].values())
        lines += [
            f"Where the time of {part['steps']} steps goes, kernels by kind:",
            "",
            "| | ms | share |",
            "|---|---:|---:|",
        ]
        for name, spent in sorted(part["milliseconds"].items(), key=lambda item: -item[1]):
            lines.append(f"| {name} | {spent:.0f} | {100 * spent / total:.0f}% |")
        lines += [
            f"| all kernels | {total:.0f} | of {part['wall']:.0f} ms that so many steps take |",
            "",
            measured(part),
            "",
        ]
    return lines


def evaluation_page(found: dict[str, Any]) -> list[str]:
    if not found.get("retrieval"):
        return ["Not measured yet: `python benchmarks/million.py`."]
    lines = [
        "| vectors | R@1 | seconds | bare product, s | over product | GiB | pairs scored again |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found["retrieval"]:
        lines.append(
            f"| {row['rows']:,} | {100 * row['values']['recall@1']:.1f} | {row['seconds']:.2f} | {row['product']:.2f} | "
            f"{row['ratio']:.2f} | {row['bytes'] / 2**30:.2f} | {row['scored again']:.1e} |"
        )
    wrong = sum(row["differing"] for row in found["retrieval"])
    lines += [
        "",
        f"Of 256 queries of each size, ranked whole in float64, {wrong or 'none'} came out otherwise. Bare product: "
        "everybody with everybody in bfloat16, in blocks; nearkin forms half of it, for a set against itself is symmetric.",
    ]
    rows = [(f"{row['rows']:,} vectors", row) for row in found["retrieval"]]
    for row in found["clustering"]:
        lines += ["", f"k-means of {row['rows']:,} vectors into {row['clusters']:,} clusters: {row['seconds']:.1f} s."]
        rows.append((f"k-means of {row['rows']:,}", row))
    growth(found["retrieval"], FIGURES / "evaluation-cuda.svg")
    return [
        *lines,
        "",
        "![Seconds against the number of vectors](figures/evaluation-cuda.svg)",
        "",
        measured(found, rows),
    ]


def tests_page(found: dict[str, Any], marked: list[str]) -> list[str]:
    """What came of the tests that want a GPU, and in a paragraph of its own which of today's it does not tell of."""
    if not found:
        return ["Not run yet: `python benchmarks/gpu_tests.py`."]
    ran = {name: count for name, count in found["tests"].items() if count["passed"]}
    cases = sum(count["passed"] for count in ran.values())
    failed = int(found["totals"]["failures"]) + int(found["totals"]["errors"])
    lines = [f"{len(ran)} tests in {cases} cases passed, {failed or 'none'} failed. {measured(found)}"]
    missing = [name.removeprefix("tests.") for name in marked if name not in ran]
    if missing:
        lines += ["", f"Of {len(marked)} such tests when this page was written, not among them: {', '.join(missing)}."]
    return lines


def axes() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "nearkin"  # the same figure has the same bytes
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.2, 2.9))
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8, colors="#444444")
    return figure, axis


def save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    print(path.relative_to(ROOT))


def bars(rates: dict[str, float], path: Path) -> None:
    figure, axis = axes()
    names = list(rates)[::-1]
    colors = ["#777777" if name == "ready crops" else LOOKS["nearkin"]["color"] for name in names]
    axis.barh(names, [rates[name] for name in names], color=colors, height=0.6)
    for place, name in enumerate(names):
        axis.text(rates[name], place, f" {rates[name]:,.0f}", va="center", fontsize=8, color="#444444")
    axis.set_xlim(0, max(rates.values()) * 1.15)
    axis.set_xlabel("images a second", fontsize=9)
    axis.set_title("One training step, fed in several ways", fontsize=10, loc="left")
    save(figure, path)


def reach(part: dict[str, Any], path: Path) -> None:
    figure, axis = axes()
    seconds, shares = zip(*part["recall@1"], strict=True)
    axis.plot(seconds, [100 * share for share in shares], markersize=4, **LOOKS["nearkin"])
    axis.axhline(100 * part["goal"], color="#777777", linestyle=":", linewidth=1.4)
    axis.text(max(seconds), 100 * part["goal"] - 0.3, f"{100 * part['goal']:.0f}", ha="right", va="top", fontsize=8)
    axis.set_xlabel("seconds of training", fontsize=9)
    axis.set_ylabel("R@1", fontsize=9)
    axis.set_xlim(left=0)
    axis.locator_params(integer=True, nbins=6)
    axis.grid(True, color="#e4e4e4", linewidth=0.6)
    axis.set_title("Birds that are known after so many seconds", fontsize=10, loc="left")
    save(figure, path)


def growth(rows: list[dict[str, Any]], path: Path) -> None:
    figure, axis = axes()
    for name, key in (("nearkin", "seconds"), ("bare matrix products", "product")):
        axis.plot([row["rows"] for row in rows], [row[key] for row in rows], label=name, markersize=4, **LOOKS[name])
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([row["rows"] for row in rows], [f"{row['rows']:,}" for row in rows])
    axis.minorticks_off()
    axis.set_xlabel("vectors, each against all", fontsize=9)
    axis.set_ylabel("seconds", fontsize=9)
    axis.grid(True, color="#e4e4e4", linewidth=0.6)
    axis.legend(fontsize=8, frameon=False)
    axis.set_title("Exact recall, R-precision and MAP@R", fontsize=10, loc="left")
    save(figure, path)


def headline(engine: dict[str, Any], evaluation: dict[str, Any]) -> str:
    """What the README says of it."""
    finished = [
        row
        for row in engine["large"]["rows"]
        if "median" in row.get("compiled", {}) and "median" in row.get("theirs", {})
    ]
    row = next((row for row in finished if row["loss"] == "ranked_list"), None)
    largest = next((row for row in evaluation.get("retrieval", []) if row["rows"] == MILLION), None)
    if row is None or largest is None:
        raise SystemExit(
            f"README needs ranked_list of both libraries at 32,768 and evaluation of {MILLION:,} vectors on a GPU; measure "
            "them first."
        )
    ours, theirs = row["compiled"], row["theirs"]
    device = engine["large"]["conditions"]["device"].removeprefix("NVIDIA ")
    # Where the results say that memory may read too low, by as much as they say.
    leaner = f"{theirs['bytes'] / (ours['bytes'] + (2**26 if 'note' in engine['large'] else 0)):.0f}"
    faster = ratio(theirs, ours, "median", 0)
    return (
        f"on an {device} ranked list loss of {row['n']:,} samples in {ours['median']:.1f} ms, {faster} times faster and "
        f"at least {leaner} times leaner than that library's, and exact retrieval measures of {largest['rows']:,} vectors "
        f"in {largest['seconds']:.1f} s"
    )


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    for mark, lines in (
        ("engine-cuda", losses_page(results("engine-cuda.json"))),
        ("training-cuda", training_page(results("training-cuda.json"))),
        ("evaluation-cuda", evaluation_page(results("evaluation-cuda.json"))),
        ("gpu-tests", tests_page(results("gpu-tests.json"), marked())),
    ):
        fill(PAGE, mark, "\n".join(lines))
    fill(ROOT / "README.md", "speed-gpu", headline(results("engine-cuda.json"), results("evaluation-cuda.json")))


if __name__ == "__main__":
    main()
