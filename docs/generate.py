"""Writes what the documentation takes from the code: docs/losses.md and docs/figures/pair-weights.svg.

python docs/generate.py            everything
python docs/generate.py --check    only say whether docs/losses.md is up to date (what the tests do)
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from nearkin import curve, losses, miners, samplers

DOCS = Path(__file__).resolve().parent
# Forms that are losses of their own in the literature get a panel of their own.
PANELS: list[tuple[str, str, dict[str, Any]]] = [
    ("contrastive", "contrastive", {}),
    ("contrastive", "contrastive, euclidean", {"distance": "euclidean"}),
    ("triplet", "triplet, all", {"miner": None}),
    ("triplet", "triplet, semihard", {}),
    ("n_pair", "n_pair", {}),
    ("lifted_structure", "lifted_structure", {}),
    ("lifted_structure", "lifted, generalized", {"form": "generalized"}),
    ("binomial_deviance", "binomial_deviance", {}),
    ("margin", "margin", {"miner": None}),
    ("multi_similarity", "multi_similarity = raw", {}),
    ("multi_similarity", "raw without vthm", {"epsilon": None}),
    ("ranked_list", "ranked_list", {}),
    ("nra", "nra", {}),
    ("nra", "nra, range_slack 0.1", {"range_slack": 0.1}),
    ("histogram", "histogram", {}),
    ("angular", "angular", {}),
    ("quadruplet", "quadruplet", {}),
    ("struct_clust", "struct_clust", {}),
    ("spectral_clust", "spectral_clust", {}),
    ("circle", "circle", {}),
    ("supcon", "supcon", {}),
    ("nt_xent", "nt_xent", {}),
    ("smooth_ap", "smooth_ap", {}),
    ("recall_at_k", "recall_at_k", {}),
    ("softmax", "softmax, normalized", {"normalized": True}),
    ("proxy_nca", "proxy_nca", {}),
    ("arcface", "arcface", {}),
    ("cosface", "cosface", {}),
    ("sub_center_arcface", "sub_center_arcface", {}),
    ("soft_triple", "soft_triple", {}),
    ("proxy_anchor", "proxy_anchor", {}),
    ("proxy_repulsion", "proxy_repulsion 2", {"variant": 2}),
]
OWN = """## A loss of your own

A class with a name and a formula; engines, miners, galleries, weights and checks come with the base.

```python
import torch.nn.functional as F
from nearkin import losses


class SoftPairs(losses.PairLoss):
    name = "soft_pairs"
    space = losses.COSINE
    limits = {"scale": losses.Limit(low=0)}

    def __init__(self, *, scale=10.0, **common):
        super().__init__(**common)
        self.scale = scale

    def rows(self, matrix, mined, extra, sizes):
        near, p, far, n = losses.split(matrix, mined.positive, mined.negative)
        pull, push = F.softplus(-self.scale * near), F.softplus(self.scale * far)
        return (pull * p).sum(1) + (push * n).sum(1)


losses.LOSSES["soft_pairs"] = SoftPairs
loss = losses.create("soft_pairs", scale=5.0, miner="vthm")
```

- `space`, a `Space`, is the matrix that `rows` gets: `COSINE` similarities, `UNIT_DISTANCE` distances of unit
  vectors, `DOT` inner products and `RAW_SQUARE` squared distances of raw ones. A property, if settings decide.
- `rows` sees some rows (b, m) of the matrix at a time, since no engine need hold all of it, and returns one value per
  row (b,), of which the loss is the mean; or numerators and counts, both (b,), if the whole batch shares one divisor.
  `extra` holds what the method `extra` gave for these rows, `sizes` the most positives of a row (with `needs_depth =
  True`) and the dim.
- `split` gives values and counts of positives and negatives; `take(matrix, mask)` those of one mask. A mask is a
  matrix of counts, or, in large batches, `Few`: the columns that count and how often. Both look alike after `split`
  and `take`.
- Multiply by the counts before any sum: 0 leaves a pair out, 2 counts it twice, and short rows of `Few` are filled up
  with 0. What is not counted must be finite all the same.
- With a miner that makes triplets, `mined.linked`, entry k of the positives goes with entry k of the negatives.
- `limits` are the ranges of the settings, checked when the loss is made: a `Limit`, or a tuple of choices. Settings
  are keywords and kept under their own names.
- A loss that no single row determines sets `rowwise = False`, says `why`, and has `whole(pairs)` with `pairs.matrix`
  and `pairs.mined` instead of `rows`.

`engine="auto"` does not compile it; `engine="compiled"` does, anew for other numbers that the loss or its miner holds as
attributes; what they find elsewhere (a global, a closure) is read once. In `LOSSES` it has a name for everything in the same
process: `losses.create`, `Embedder(loss=...)` and `nearkin.train.loop.train`. Commands such as `nearkin train` and
`nearkin bench` are processes of their own, which do not know it.
"""
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"  # told apart by every kind of colour vision, and by their dashes


def create(name: str, settings: dict[str, Any]) -> Any:
    return losses.example(name, settings, classes=10, dim=8).double()


def figure(path: Path) -> None:
    """Weight against similarity for every loss, positives and negatives, each panel on its own scale."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"svg.hashsalt": "nearkin", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    )
    columns = 4
    rows = -(-len(PANELS) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(10, 1.75 * rows), sharex=True, layout="constrained")
    for place, (ax, (name, title, settings)) in enumerate(zip(axes.flat, PANELS, strict=False)):
        found = curve(create(name, settings), points=161)
        ax.axhline(0, color="#999999", linewidth=0.6)
        ax.plot(found.similarity, found.positive, color=POSITIVE, linewidth=1.6, label="positive pair")
        ax.plot(
            found.similarity,
            found.negative,
            color=NEGATIVE,
            linewidth=1.6,
            linestyle=(0, (4, 1.5)),
            label="negative pair",
        )
        ax.set_title(title, fontsize=9, loc="left", pad=3)
        ax.locator_params(axis="y", nbins=3)
        ax.tick_params(length=2)
        if place >= len(PANELS) - columns:
            ax.set_xlabel("similarity")
    for ax in axes.flat[len(PANELS) :]:
        ax.set_visible(False)
    handles, names = axes.flat[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper right", ncols=2, frameon=False, fontsize=9)
    fig.suptitle("The weight a loss gives a pair, against the pair's similarity", x=0.01, ha="left", fontsize=11)
    fig.patch.set_facecolor("white")
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def _signature(cls: Any) -> str:
    parts = [
        f"`{p.name}={p.default!r}`"
        for p in inspect.signature(cls.__init__).parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.default is not p.empty
    ]
    return ", ".join(parts) or "none of its own"


def page() -> str:
    """The page of all losses, from their docstrings."""
    text = [
        "# Losses",
        "",
        "Written by `python docs/generate.py` from the docstrings; change those.",
        "",
        "Every loss is made by `losses.create(name, **settings)` or from its class, and called with",
        "`loss(embeddings, labels)`. Symbols: `f` raw embedding, `x = f / |f|`, `s_ij = x_i.x_j`, `d_ij = |x_i - x_j|`,",
        "`P_i` and `N_i` the positives and negatives of anchor i, `[a]+ = max(0, a)`. The loss is the mean over anchors",
        'unless it says otherwise. Sources: RLL Ranked List Loss, DD the thesis "Metric Learning: A Deep Dive", UV the',
        "unified view, NRA nonlinear rank approximations.",
        "",
        "Some losses learn from raw embeddings: n_pair, nra, plain softmax, and those with `normalize=False`. Evaluation",
        "and search compare by cosine all the same: the length of a vector does not count there.",
        "",
        '`reduction="none"` gives one value per anchor, (n,), whose mean is the loss; per proxy, (classes,), for',
        "proxy_anchor and proxy_repulsion, where proxies are the anchors. Losses that run dense only have none.",
        "",
        "What a loss learns (proxies, thresholds) an optimiser gets from `loss.parameter_groups(lr)`, at the rate",
        "`lr * lr_multiplier`; of other losses the list is empty. `nearkin train` has `--loss-multiplier` for that",
        "instead, and refuses `lr_multiplier` among the settings of a loss.",
        "",
        "Losses have first derivatives only: `create_graph=True`, as a penalty on gradients needs it, is an error.",
        "",
        "![Weight against similarity for every loss](figures/pair-weights.svg)",
        "",
        "The figure: what a pair weighs in the gradient as its similarity changes, all other pairs of its batch fixed",
        "(`nearkin.curve`). A line below zero moves a pair against its label, as in nra, supcon and spectral_clust.",
        "",
    ]
    kinds = [("Pair losses", losses.PairLoss), ("Proxy losses", losses.ProxyLoss)]
    for heading, kind in kinds:
        common = {
            losses.PairLoss: "`miner` (a name, a function or None), `engine`, `reduction`, `seed`",
            losses.ProxyLoss: "`classes` and `dim` (both needed), `engine`, `reduction`, `lr_multiplier`",
        }[kind]
        text += [f"## {heading}", "", f"Settings of all: {common}.", ""]
        for name, cls in sorted(losses.LOSSES.items()):
            if not issubclass(cls, kind) or name != cls.name:
                continue
            body = inspect.cleandoc(cls.__doc__ or "").split("\n>>> ")[0].strip().replace("``", "`")
            row = "every engine" if getattr(create(name, {}), "rowwise", True) else f"dense only: {cls.why}"
            alias = [other for other, same in losses.LOSSES.items() if same is cls and other != name]
            also = f" (also `{alias[0]}`)" if alias else ""
            text += [f"### {name}{also}", "", body, "", f"Settings: {_signature(cls)}. Runs with {row}.", ""]
    text += [OWN, "## Miners", "", "| name | keeps | settings |", "|---|---|---|"]
    for name, function in miners.MINERS.items():
        keeps = " ".join(inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].split())
        text.append(f"| `{name}` | {keeps} | {_signature_of(function)} |")
    text += ["", "## Samplers", "", "| name | batches |", "|---|---|"]
    for name, cls in samplers.SAMPLERS.items():
        body = inspect.cleandoc(cls.__doc__ or "")
        text.append(f"| `{name}` | {' '.join(body.split(chr(10) * 2)[0].split())} |")
    return "\n".join(text) + "\n"


def _signature_of(function: Any) -> str:
    parts = [
        f"`{p.name}={p.default!r}`" for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY
    ]
    return ", ".join(parts)


def main() -> int:
    target = DOCS / "losses.md"
    if "--check" in sys.argv:
        return int(not target.exists() or target.read_text() != page())
    target.write_text(page())
    (DOCS / "figures").mkdir(exist_ok=True)
    figure(DOCS / "figures" / "pair-weights.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
