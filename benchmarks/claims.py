"""What the sources claim of their losses, as questions that the comparison on real birds can answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from packed import METRIC

from nearkin import published


@dataclass(frozen=True)
class Alike:
    """The same pair trained with equal settings: ``other`` as the claim calls it; the ablation's ``grid``, and its rows for
    the claim's loss and for the other."""

    other: str
    grid: str
    one: str
    against: str


@dataclass(frozen=True)
class Claim:
    """What a source says of one loss and others.

    - ``one`` and ``others``: labels of the benchmark; ``rows``: how the source's ``table`` names them, where it has them;
    - ``dim``: of the source's rows, where it has several;
    - ``forms``: of others that stand for another form of the loss there, the form there and the one here;
    - ``alike``: where an ablation has the pair with equal settings, which the recipes of the two are not.
    """

    title: str
    words: str
    one: str
    others: tuple[str, ...]
    source: str
    table: int
    rows: dict[str, str] = field(default_factory=dict)
    dim: int | None = None
    forms: dict[str, tuple[str, str]] = field(default_factory=dict)
    alike: tuple[Alike, ...] = ()

    def printed(self, label: str) -> float:
        """The R@1 on birds that the source gives a loss, in percent; not a number where it has none."""
        found = published.facts(self.source, self.table, data="cub200", metric=METRIC)
        values = [
            fact.value
            for fact in found
            if fact.method == self.rows.get(label) and (self.dim is None or fact.dim == self.dim)
        ]
        return values[0] if values else math.nan


_RANKED = {
    "ranked_list": "RLL-H",
    "ranked_list L/M/H": "RLL-(L,M,H)",
    "triplet": "Triplet Semihard",
    "lifted_structure": "Lifted Struct",
    "n_pair": "N-pair-mc",
    "proxy_nca": "Proxy NCA",
}
_FORMS = {
    "lifted_structure": ("the original form", "the generalized one, mined by vthm"),
    "n_pair": ("the form mc, two images of a class in a batch", "all pairs of batches with five images of a class"),
}
_LATER = ("contrastive", "margin", "multi_similarity", "proxy_anchor")
CLAIMS = (
    Claim(
        "Ranked list loss and its competitors",
        "The paper puts it ahead of every loss it compares with. The last four below are not in its table.",
        "ranked_list",
        ("triplet", "lifted_structure", "n_pair", "proxy_nca", *_LATER),
        "ranked_list",
        1,
        _RANKED,
        forms=_FORMS,
    ),
    Claim(
        "Ranked list loss on three levels",
        "The paper puts L/M/H, with three times as many dimensions, ahead of one level and of all others. The last four "
        "below are not in its table.",
        "ranked_list L/M/H",
        ("ranked_list", "triplet", "lifted_structure", "n_pair", "proxy_nca", *_LATER),
        "ranked_list",
        1,
        _RANKED,
        forms=_FORMS,
        alike=(
            Alike("ranked_list", "ranked_list_levels", "L, M, H", "H"),
            Alike("ranked_list", "ranked_list_levels_fast", "L, M, H at 3e-5", "H at 3e-5"),
        ),
    ),
    Claim(
        "RAW with VTHM (multi_similarity) and what it grew from",
        "The unified view derives its weights from those of binomial deviance and lifted structure to better both. It "
        "measures the first beside its own, the second not.",
        "multi_similarity",
        ("binomial_deviance", "lifted_structure"),
        "unified_view",
        1,
        {"multi_similarity": "RAW+VTHM (ours)", "binomial_deviance": "Binomial"},
        alike=(Alike("binomial_deviance", "unified_view", "raw + vthm", "binomial"),),
    ),
    Claim(
        "NRA, triplet, lifted structure and N-pair",
        "The paper puts it ahead of all three, trained alike.",
        "nra",
        ("triplet", "lifted_structure", "n_pair"),
        "nra",
        1,
        {"nra": "NRA (ours)", "triplet": "Triplet", "lifted_structure": "Lifted", "n_pair": "N-Pair"},
        512,
        {"triplet": ("squared distances of raw vectors", "cosines"), **_FORMS},
    ),
    Claim(
        "Proxy repulsion and proxy anchor",
        "The thesis pushes proxies apart instead of samples. It measures the second form only, and finds it behind.",
        "proxy_repulsion 2",
        ("proxy_anchor",),
        "deep_dive",
        17,
        {"proxy_repulsion 2": "OurLoss", "proxy_anchor": "ProxyAnchor"},
        512,
    ),
    Claim(
        "Proxy repulsion in its first form",
        "The thesis proposes it as the naive form and prints no figure for it.",
        "proxy_repulsion 1",
        ("proxy_anchor", "proxy_repulsion 2"),
        "deep_dive",
        17,
    ),
)
