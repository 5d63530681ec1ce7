"""The base of every pair loss: checks the batch, builds the plan, hands it to the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor, nn

from nearkin import checks, engine, miners
from nearkin.engine import Sizes
from nearkin.losses import settings
from nearkin.losses.batch import Batch
from nearkin.losses.whole import Whole
from nearkin.masks import Masks
from nearkin.miners import Context, Mined, Miner, together
from nearkin.pairs import Mask
from nearkin.space import COSINE, Space
from nearkin.vectors import poison, squares, work


class Common(TypedDict, total=False):
    """Settings of every pair loss."""

    miner: str | Callable[..., Any] | None
    engine: str
    reduction: str
    seed: int


class PairLoss(nn.Module):
    """A loss over pairs of samples. A subclass says which matrix it wants (``space``) and maps rows to numbers.

    Row-wise losses implement ``rows``; the others set ``rowwise = False``, say ``why`` and implement ``whole``.

    Settings of every pair loss: ``miner`` (a name, a function or None), ``engine`` ("auto", "dense", "blocked" or
    "compiled"), ``reduction`` ("mean" or "none"), ``seed`` (of random miners).
    """

    name: ClassVar[str]
    limits: ClassVar[dict[str, checks.Limit | tuple[object, ...]]] = {}
    rowwise: bool = True
    why: ClassVar[str] = ""
    needs_depth: bool = False
    fixed: ClassVar[dict[str, str]] = {}
    """Settings that only say how the loss is made, each with what was made of it; assigned later they are refused."""
    mined_by: ClassVar[tuple[str, ...]] = ("miner",)
    """Settings that ``mining`` reads."""
    whole_rows: ClassVar[bool] = False  # wants to see every column, also those that a miner left out
    column_gradient: bool = True
    members: int | None = None
    """The most samples of a class among the columns, if known: some losses and miners must know it, and counting makes a GPU
    wait. A class that has more makes the value NaN, on a CPU it is an error."""
    draws: Tensor

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        settings.configure(cls, Common)

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__()
        self.miner = common.get("miner")
        self.engine = common.get("engine", "auto")
        self.reduction = common.get("reduction", "mean")
        self.seed = common.get("seed", 0)
        self.chosen: Miner | None = self.mining(self._mined_by())

    def __setattr__(self, name: str, value: Any) -> None:
        # The constructor checks what it was given at its end. A miner that is a module is kept among the modules.
        if name in vars(self) or name in vars(self).get("_modules", ()):
            if name == "engine":
                engine.check(self.name, value, self.rowwise, self.why)
            value = settings.assigned(self, name, value)
            if name in self.mined_by:
                self.chosen = self.mining({**self._mined_by(), name: value})
                self._modules.pop(name, None)
        super().__setattr__(name, value)
        if name == "chosen":
            self._count_draws()

    def _mined_by(self) -> dict[str, Any]:
        return {key: getattr(self, key, None) for key in self.mined_by}

    # ------------------------------------------------------------------------------------------ for subclasses

    @property
    def space(self) -> Space:
        return COSINE

    @property
    def splits(self) -> bool:
        """Whether several processes may each compute some rows of one batch."""
        return self.rowwise

    def rows(self, matrix: Tensor, mined: Mined, extra: tuple[Tensor, ...], sizes: Sizes) -> engine.RowResult:
        """Values of some rows of the matrix, or numerators and counts."""
        raise NotImplementedError

    def whole(self, pairs: Whole) -> Tensor:
        """The loss of the whole batch, for losses that no single row determines."""
        raise NotImplementedError

    def extra(self, queries: Tensor, labels: Tensor | None) -> tuple[Tensor, ...]:
        """Further inputs with one entry per row (a learned threshold, a norm)."""
        return ()

    def arranged(self, batch: Batch) -> Batch:
        """What is compared, for losses that take a batch apart."""
        return batch

    def mining(self, values: Mapping[str, Any]) -> Miner | None:
        """The miner that such settings mean."""
        return miners.resolve(self.name, values["miner"])

    @property
    def kernel(self) -> engine.Kernel | None:
        """The step of large 16-bit blocks on a GPU, for losses that have one written by hand."""
        return None

    def check_together(self) -> None:
        """Settings that only make sense together; subclasses call this first."""
        settings.written(self, PairLoss, ("rows", "block") if self.rowwise else ("whole",))
        engine.check(self.name, self.engine, self.rowwise, self.why)
        settings.reduces(self, self.reduction)
        checks.setting(self.name, "seed", self.seed, checks.SEED)

    # ------------------------------------------------------------------------------------------ the call

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        gallery: Tensor | None = None,
        gallery_labels: Tensor | None = None,
        *,
        self_index: Tensor | None = None,
        positive: Tensor | None = None,
        negative: Tensor | None = None,
        valid: Tensor | None = None,
        weights: Tensor | None = None,
        reduction: str | None = None,
        total: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """The loss of a batch (n, dim) with labels (n,).

        ``gallery`` (m, dim) and ``gallery_labels`` replace the columns: a memory, or the batches of all ranks.
        ``self_index`` (n,) names each query's own column, -1 where it has none; without it a gallery holds none.
        ``positive`` and ``negative`` (n, m) are explicit masks instead of labels, booleans or counts, and no pair is in
        both; without ``negative`` every pair that is not positive is negative. ``valid`` (m,), booleans, says which gallery
        columns count. ``weights`` (n,): an anchor of weight 2
        counts as if it stood in the mean twice. ``total`` sums a number over all processes that hold rows of one batch: the
        values of all of them then add up to the loss.
        """
        batch = Batch(embeddings, labels, gallery, gallery_labels, self_index, positive, negative, valid, weights)
        batch.check()
        reduction = self.reduction if reduction is None else reduction
        settings.reduces(self, reduction)
        kind = self._settled(batch)
        if self.chosen is not None and self.chosen.random and self.draws.device != embeddings.device:
            self.draws = self.draws.to(embeddings.device)  # a miner may be assigned to a loss that learns nothing
        if reduction == "mean" and total is None and not self.asks(batch) and engine.possible(kind, batch):
            return engine.replay(self, _of_batch, batch, engine.facts(self))
        return self._value(batch, reduction, total)

    def _value(self, batch: Batch, reduction: str = "mean", total: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        with torch.autocast(batch.embeddings.device.type, enabled=False):
            plan = self._plan(batch, total)
            value = self.whole(plan) if isinstance(plan, Whole) else engine.run(plan, self._settled(batch), reduction)
            if self.training and self.chosen is not None and self.chosen.random:
                self.draws += 1
            value = value + poison(batch.embeddings, batch.gallery, batch.weights)
            return value + self._crowded(plan.masks) if self.counts and self.members else value

    def _settled(self, batch: Batch) -> str:
        """The engine for a batch."""
        foreign = self.chosen is not None and self.chosen.function is not None
        return engine.settled(self.engine, batch.shape, batch.embeddings.device, self, foreign=foreign)

    @property
    def counts(self) -> bool:
        """Whether the most positives of any query must be known."""
        return self.needs_depth or (self.chosen is not None and self.chosen.needs_depth)

    def asks(self, batch: Batch) -> bool:
        """Whether a call asks the device something, or may: a user's miner is not known to us."""
        if not self.rowwise or (self.chosen is not None and self.chosen.function is not None):
            return True
        return self.counts and (self.members is None or batch.positive is not None)

    def _crowded(self, masks: Masks) -> Tensor:
        if masks.gallery_labels is None or masks.positive is not None:
            return torch.zeros(())
        crowded = masks.crowded()
        if crowded.device.type == "cpu" and crowded:
            raise ValueError(
                f"labels must hold no class more than {self.members} times since members={self.members} was set, got "
                f"one that is there more often; raise members or set it to None."
            )
        return torch.where(crowded, torch.nan, 0.0)

    def plan(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        gallery: Tensor | None = None,
        gallery_labels: Tensor | None = None,
        *,
        self_index: Tensor | None = None,
        positive: Tensor | None = None,
        negative: Tensor | None = None,
        valid: Tensor | None = None,
        weights: Tensor | None = None,
        total: Callable[[Tensor], Tensor] | None = None,
    ) -> engine.Plan | Whole:
        """Everything checked and prepared, nothing of size n x m computed yet."""
        batch = Batch(embeddings, labels, gallery, gallery_labels, self_index, positive, negative, valid, weights)
        batch.check()
        return self._plan(batch, total)

    def _plan(self, batch: Batch, total: Callable[[Tensor], Tensor] | None = None) -> engine.Plan | Whole:
        batch = self.arranged(batch) if self.rowwise else batch.only_valid()
        embeddings, labels, gallery, gallery_labels, self_index, positive, negative, valid, weights = batch
        # Row-wise losses leave length and precision of queries to the engine, which prepares them block by block.
        later = self.rowwise and self.space.unit
        queries = embeddings if later else self.space.prepare(embeddings)
        columns = None if gallery is None else gallery.to(embeddings.dtype)
        if columns is not None and not later:
            columns = self.space.prepare(columns)
        masks = Masks(
            batch.shape,
            labels,
            labels if gallery is None else gallery_labels,
            self_index,
            positive,
            negative,
            valid,
            apart=gallery is not None and self_index is None,
            members=self.members,
        )
        weights = None if weights is None else weights.to(work(queries.dtype))
        if not self.rowwise:
            return Whole(self, queries, queries if columns is None else columns, masks, weights)
        row, shared = self._inputs(queries, columns, labels, self_index)
        depth = masks.depth if self.counts else 0
        products = engine.factors(embeddings) if self.space.unit else None
        return engine.Plan(
            self.block,
            queries,
            masks,
            columns,
            row,
            shared,
            weights,
            self.column_gradient,
            engine.Sizes(depth, queries.shape[1]),
            unit=later,
            gallery_unit=later,
            total=total,
            products=products,
            kernel=None if products is None or self.chosen is not None else self.kernel,
        )

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: Sizes,
    ) -> engine.RowResult:
        """Rows of inner products to rows of values: the matrix of the loss's space, the miner, the formula."""
        ids, lengths, *extra = row
        key, column_lengths = shared
        context = Context(sizes.depth, sizes.dim, key, ids)
        if self.space.needs_squares:
            matrix = self.space.matrix(dot, lengths, column_lengths)
            mined = self.mine(dot, matrix, positive, negative, context)
        else:
            mined = self.mine(dot, dot, positive, negative, context)
            if not self.whole_rows:
                dot, mined = together(dot, mined)
            matrix = self.space.matrix(dot)
        result = self.rows(matrix, mined, tuple(extra), sizes)
        parts = result if isinstance(result, tuple) else (result,)
        if len(parts) > 2 or any(not isinstance(part, Tensor) or part.shape != dot.shape[:1] for part in parts):
            raise ValueError(self._no_values(parts, len(dot)))
        return result

    def mine(self, dot: Tensor, matrix: Tensor, positive: Mask, negative: Tensor, context: Context) -> Mined:
        if self.chosen is None:
            return Mined(positive, negative)
        similarity = self.space.similarity(dot.detach(), matrix.detach())
        return self.chosen(similarity, positive, negative, context)

    def pair_masks(self, plan: engine.Plan | Whole, dot: Tensor) -> tuple[Tensor, Tensor]:
        """Which pairs of the matrix are positive and which negative, before any miner."""
        return plan.masks.all_rows(dot)

    def context_key(self, queries: Tensor) -> Tensor:
        """What random miners draw from in this step: a number made of the seed and the number of the batch."""
        if self.chosen is None or not self.chosen.random:
            return queries.new_empty(0)
        return self.draws.to(queries.device) * 1_000_003 + self.seed

    def _count_draws(self) -> None:
        """Batches are counted for random miners, so that every step draws anew and a resumed run draws the same again."""
        random, known = self.chosen is not None and self.chosen.random, "draws" in self._buffers
        if random and not known:
            device = next((x.device for x in self.parameters()), None)
            self.register_buffer("draws", torch.zeros((), dtype=torch.int64, device=device))
        elif known and not random:
            del self.draws

    def _inputs(
        self, queries: Tensor, columns: Tensor | None, labels: Tensor | None, self_index: Tensor | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        n = len(queries)
        ids = torch.arange(n, device=queries.device)
        if self_index is not None:
            ids = torch.where(self_index >= 0, self_index, ids)
        lengths = column_lengths = queries.new_empty(n, 0)
        if self.space.needs_squares:
            lengths = squares(queries)
            column_lengths = lengths if columns is None else squares(columns)
            if not self.column_gradient:
                column_lengths = column_lengths.detach()
        return (ids, lengths, *self.extra(queries, labels)), (self.context_key(queries), column_lengths)

    # ------------------------------------------------------------------------------------------ settings, errors

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Groups for an optimiser whose other parameters learn at ``lr``; none where the loss learns nothing."""
        return settings.groups(self, lr)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Whether batches are counted depends on the miner, which is no part of what was learned."""
        if "draws" in self._buffers:
            state_dict.setdefault(f"{prefix}draws", self.draws)
        else:
            state_dict.pop(f"{prefix}draws", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @property
    def settings(self) -> dict[str, Any]:
        """What ``losses.create(loss.name, **loss.settings)`` needs to make this loss again, or its class where no name of
        ``losses.LOSSES`` stands for it."""
        return settings.read(self, Common)

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self.settings.items())

    def _no_values(self, parts: tuple[object, ...], rows: int) -> str:
        came = [f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__ for x in parts]
        return (
            f"{self.name}: rows must return one value per row, of shape ({rows},), or two such tensors, numerators and "
            f"counts, got {' and '.join(came)}; sum over the columns only, with .sum(1)."
        )


def _of_batch(loss: PairLoss, *given: Tensor | None) -> Tensor:
    """The value of a loss for the tensors of one call."""
    return loss._value(Batch(*given))  # type: ignore[arg-type]
