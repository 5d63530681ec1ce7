"""Which losses ``losses.py`` measures, beside what of pytorch-metric-learning, and the bare matrix products of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from batches import DIM, clustered

from nearkin import engine, losses

IMAGES = 4


@dataclass(frozen=True)
class Entry:
    """A loss in both libraries, or in ours alone. ``products``: matrix products, 2 where columns get no gradient."""

    name: str
    theirs: str | None = None
    ours: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    miner: tuple[str, dict[str, Any]] | None = None
    products: int = 3
    cosine: bool = False
    images: int = IMAGES
    # What is the same in name only; see docs/from-pytorch-metric-learning.md.
    differs: bool = False

    @property
    def proxy(self) -> bool:
        return issubclass(losses.LOSSES[self.name], losses.ProxyLoss)

    @property
    def rowwise(self) -> bool:
        return bool(self.make_ours(8).rowwise)

    def make_ours(self, n: int) -> Any:
        proxy = {"classes": n // IMAGES, "dim": DIM} if self.proxy else {}
        return losses.create(self.name, **self.ours, **proxy)

    def make_theirs(self, n: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        import pytorch_metric_learning.distances as distances
        import pytorch_metric_learning.losses as library
        import pytorch_metric_learning.miners as miners
        import pytorch_metric_learning.regularizers as regularizers

        assert self.theirs is not None
        options = dict(self.options)
        if self.proxy:
            options |= {"num_classes": n // IMAGES, "embedding_size": DIM}
        if self.name == "soft_triple":  # the term that merges centers, which is an option there
            merge = regularizers.SparseCentersRegularizer(n // IMAGES, options["centers_per_class"])
            options |= {"weight_regularizer": merge, "weight_reg_weight": 0.2}
        if self.cosine:
            options["distance"] = distances.CosineSimilarity()
        loss = getattr(library, self.theirs)(**options)
        if self.miner is None:
            return loss
        miner = getattr(miners, self.miner[0])(**self.miner[1])
        return lambda embeddings, labels: loss(embeddings, labels, miner(embeddings, labels))


ENTRIES = [
    Entry("contrastive", "ContrastiveLoss", options={"pos_margin": 1, "neg_margin": 0.5}, cosine=True),
    Entry("triplet", "TripletMarginLoss", {"miner": None}, {"margin": 0.1}, cosine=True),
    Entry("n_pair", "NPairsLoss", {"form": "mc"}, images=2, differs=True),
    Entry("lifted_structure", "LiftedStructureLoss", differs=True),
    Entry("lifted_structure", "GeneralizedLiftedStructureLoss", {"form": "generalized"}, differs=True),
    Entry(
        "margin",
        "MarginLoss",
        {},
        {"learn_beta": True},
        ("DistanceWeightedMiner", {"cutoff": 0.5, "nonzero_loss_cutoff": 1.4}),
    ),
    Entry(
        "multi_similarity",
        "MultiSimilarityLoss",
        {},
        {"alpha": 2, "beta": 50, "base": 0.5},
        ("MultiSimilarityMiner", {"epsilon": 0.1}),
    ),
    Entry("ranked_list", "RankedListLoss", {}, {"margin": 0.4, "Tn": 10, "alpha": 1.2}, products=2, differs=True),
    Entry("histogram", "HistogramLoss", {}, {"n_bins": 100}),
    Entry("angular", "AngularLoss", {}, {"alpha": 45}, differs=True),
    Entry("circle", "CircleLoss", {}, {"m": 0.4, "gamma": 80}),
    Entry("supcon", "SupConLoss", {}, {"temperature": 0.1}),
    Entry("nt_xent", "NTXentLoss", {}, {"temperature": 0.1}, differs=True),
    Entry("smooth_ap", "SmoothAPLoss", {}, {"temperature": 0.01}, differs=True),
    Entry("softmax", "NormalizedSoftmaxLoss", {"normalized": True}, {"temperature": 0.05}),
    Entry("proxy_nca", "ProxyNCALoss", {}, {"softmax_scale": 9}, differs=True),
    Entry("arcface", "ArcFaceLoss", {}, {"margin": 28.6, "scale": 64}),
    Entry("cosface", "CosFaceLoss", {}, {"margin": 0.35, "scale": 64}),
    Entry("sub_center_arcface", "SubCenterArcFaceLoss", {}, {"margin": 28.6, "scale": 64, "sub_centers": 3}),
    Entry("soft_triple", "SoftTripleLoss", {}, {"centers_per_class": 10, "la": 20, "gamma": 0.1, "margin": 0.01}),
    Entry("proxy_anchor", "ProxyAnchorLoss", {}, {"margin": 0.1, "alpha": 32}),
    Entry("n_pair"),
    Entry("binomial_deviance"),
    Entry("nra"),
    Entry("recall_at_k"),
    Entry("proxy_repulsion"),
]


def batch(n: int, images: int = IMAGES) -> tuple[torch.Tensor, torch.Tensor]:
    embeddings, labels = clustered(n, images)
    torch.manual_seed(0)  # of proxies
    return embeddings.requires_grad_(True), labels


def factors(entry: Entry, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns that a loss compares."""
    embeddings = batch(n)[0].detach()
    if getattr(entry.make_ours(8), "form", None) == "mc":
        embeddings = embeddings[: n // 2]  # anchors against second elements
    proxies = torch.randn(n // IMAGES * getattr(entry.make_ours(n), "centers", 1), DIM) if entry.proxy else None
    rows, columns = embeddings, embeddings if proxies is None else proxies
    if entry.proxy and entry.make_ours(8).proxies_are_rows:
        rows, columns = columns, rows
    return rows, columns


def bare(entry: Entry, n: int) -> Callable[[], None]:
    """The matrix products the loss needs, in the engine's blocks, into memory that is there already."""
    rows, columns = factors(entry, n)
    run = _products(rows, columns, entry.products)
    if entry.name != "proxy_repulsion":
        return run
    among = _products(rows, rows, 3)  # its second term: proxies against proxies

    def both() -> None:
        run()
        among()

    return both


def _products(rows: torch.Tensor, columns: torch.Tensor, number: int) -> Callable[[], None]:
    """Inner products, then the gradient of the rows, and with 3 that of the columns."""
    block = engine.block_rows(len(rows), len(columns), rows.device)
    buffer = torch.empty(block, len(columns))
    row_grad, column_grad = torch.zeros_like(rows), torch.zeros_like(columns)

    def run() -> None:
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            dot = torch.mm(part, columns.T, out=buffer[: len(part)])
            row_grad[start : start + block].addmm_(dot, columns)
            if number > 2:
                column_grad.addmm_(dot.T, part)

    return run
