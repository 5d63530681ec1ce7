"""The base of every proxy loss: learned class representatives that samples are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, ClassVar, TypedDict, Unpack

import torch
from torch import Tensor, nn

from nearkin import checks, engine
from nearkin.losses import settings
from nearkin.losses.batch import Batch
from nearkin.masks import Masks
from nearkin.pairs import Mask
from nearkin.space import COSINE, Space
from nearkin.vectors import poison, work


class Common(TypedDict, total=False):
    """Settings of every proxy loss."""

    classes: int
    dim: int
    engine: str
    reduction: str
    lr_multiplier: float


class ProxyLoss(nn.Module):
    """A loss between samples and proxies. The ``proxies`` are parameters: whoever optimises ``loss.parameters()`` trains
    them; ``lr_multiplier`` is the factor of their learning rate in ``parameter_groups``.

    Settings of every proxy loss: ``classes``, ``dim``, ``engine``, ``reduction`` as in pair losses, ``lr_multiplier``.
    Rows are the samples and columns the proxies, unless ``proxies_are_rows``.
    """

    name: ClassVar[str]
    limits: ClassVar[dict[str, checks.Limit | tuple[object, ...]]] = {}
    fixed: ClassVar[dict[str, str]] = dict.fromkeys(("classes", "dim", "centers"), "loss.proxies were made for it")
    """Settings that only say how the loss is made, each with what was made of it; assigned later they are refused."""
    rowwise: bool = True
    why: ClassVar[str] = ""
    proxies_are_rows: ClassVar[bool] = False
    labels_are_proxies: bool = True
    needs_masks: ClassVar[bool] = False
    proxies: nn.Parameter

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        settings.configure(cls, Common)

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__()
        for needed in ("classes", "dim"):
            if needed not in common:
                raise TypeError(
                    f"{self.name} needs {needed}=, got none; pass the number of "
                    f"{'training classes' if needed == 'classes' else 'embedding dimensions'}."
                )
            checks.setting(self.name, needed, common[needed], checks.COUNT)
        self.classes = common["classes"]
        self.dim = common["dim"]
        self.engine = common.get("engine", "auto")
        self.reduction = common.get("reduction", "mean")
        self.lr_multiplier = common.get("lr_multiplier", 1.0)

    def make_proxies(self, centers: int | None = None) -> nn.Parameter:
        """Random directions of about unit length, (classes, dim) or (classes, centers, dim)."""
        shape = (self.classes, self.dim) if centers is None else (self.classes, centers, self.dim)
        return nn.Parameter(torch.randn(shape) / self.dim**0.5)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):  # the constructor checks what it was given at its end
            if name == "engine":
                engine.check(self.name, value, self.rowwise, self.why)
            value = settings.assigned(self, name, value)
        super().__setattr__(name, value)

    # ------------------------------------------------------------------------------------------ for subclasses

    @property
    def space(self) -> Space:
        return COSINE

    def rows(self, similarity: Tensor, target: Tensor, spare: bool) -> engine.RowResult:
        """Values of samples (b,) from their similarities to all proxies (b, m), of which ``target`` (b,) is that of their
        class; ``spare``: they may be written over."""
        raise NotImplementedError

    def block(
        self,
        dot: Tensor,
        positive: Mask,
        negative: Tensor,
        row: tuple[Tensor, ...],
        shared: tuple[Tensor, ...],
        sizes: engine.Sizes,
    ) -> engine.RowResult:
        """Values of some rows: samples against proxies, the class of each in ``row``; or proxies against samples, for which
        this is written anew."""
        return self.rows(dot, row[0], sizes.spare)

    def whole(self, plan: engine.Plan, dot: Tensor) -> Tensor:
        """The loss of the whole batch, for losses that no single row determines."""
        raise NotImplementedError

    def apart(self, plan: engine.Plan) -> Tensor | None:
        """What does not depend on single rows (a regulariser), added to the loss."""
        return None

    def check_together(self) -> None:
        """Settings that only make sense together; subclasses call this first."""
        settings.written(self, ProxyLoss, ("rows", "block") if self.rowwise else ("whole",))
        engine.check(self.name, self.engine, self.rowwise, self.why)
        settings.reduces(self, self.reduction)
        checks.setting(self.name, "lr_multiplier", self.lr_multiplier, checks.NOT_NEGATIVE)

    def walks(self, embeddings: Tensor, kind: str) -> bool:
        """Whether ``walk`` is the way to go for such a batch, on this kind of engine."""
        return False

    def walk(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of a batch without weights, by a way of the loss's own."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ the call

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        *columns: Any,
        weights: Tensor | None = None,
        reduction: str | None = None,
        **others: Any,
    ) -> Tensor:
        """The loss of a batch (n, dim) with labels (n,) from 0 to classes - 1; ``weights`` (n,) as in pair losses."""
        self.check_call(embeddings, labels, columns, weights, others)
        reduction = self.reduction if reduction is None else reduction
        settings.reduces(self, reduction)
        given = (embeddings, labels, weights)
        shape = len(embeddings), self.proxies.numel() // self.dim
        kind = engine.settled(self.engine, shape, embeddings.device, self)
        walks = reduction == "mean" and weights is None and self.walks(embeddings, kind)
        if reduction == "mean" and self.rowwise and not walks and engine.possible(kind, given):
            return engine.replay(self, _of_batch, given, engine.facts(self))
        return self._value(*given, reduction=reduction, walks=walks)

    def _value(
        self, embeddings: Tensor, labels: Tensor, weights: Tensor | None, reduction: str = "mean", walks: bool = False
    ) -> Tensor:
        with torch.autocast(embeddings.device.type, enabled=False):
            if walks:
                value = self.walk(embeddings, labels)
            else:
                value = self.value(self.plan(embeddings, labels, weights=weights), reduction)
            if labels.device.type != "cpu" and self.labels_are_proxies:
                outside = (labels < 0) | (labels >= self.classes)
                value = value + torch.where(outside.any(), torch.nan, 0.0)
            return value + poison(embeddings, weights)

    def value(self, plan: engine.Plan, reduction: str = "mean", dot: Tensor | None = None) -> Tensor:
        """The loss of a plan; ``dot`` replaces the inner products, to differentiate with respect to them."""
        if not self.rowwise:
            return self.whole(plan, engine.inner_products(plan.queries, plan.columns) if dot is None else dot)
        kind = engine.settled(self.engine, plan.masks.shape, plan.source.device, self)
        main = engine.run(plan, kind, reduction) if dot is None else engine.dense(plan, reduction, dot)
        apart = self.apart(plan)
        return main if apart is None else main + apart

    def plan(self, embeddings: Tensor, labels: Tensor, *, weights: Tensor | None = None) -> engine.Plan:
        # Vectors are scaled to length 1 by the engine.
        later = self.space.unit and self.rowwise
        samples, proxies = embeddings, self.proxies.to(work(embeddings.dtype))
        # Several centers of a class stand one class after another, center by center: reductions over centers are fast so.
        # They are copied for that, and scaled at once: the engine would keep this copy beside the one that it scales.
        several = proxies.dim() == 3
        if several:
            proxies = proxies.transpose(0, 1).flatten(0, 1)
        if not later:
            samples = self.space.prepare(samples)
        if several or not later:
            proxies = self.space.prepare(proxies)
        numbers = torch.arange(self.classes, device=labels.device)
        if several:
            numbers = numbers.repeat(len(proxies) // self.classes)
        weights = None if weights is None else weights.to(work(samples.dtype))
        products = engine.factors(embeddings) if self.space.unit else None
        if self.proxies_are_rows:
            masks = Masks((len(proxies), len(samples)), numbers, labels, apart=True)
            shared = self.shared(labels, weights, proxies)
            return engine.Plan(
                self.block, proxies, masks, samples, shared=shared, unit=later, gallery_unit=later, products=products
            )
        masks = Masks((len(samples), len(proxies)), labels, numbers, apart=True)
        target = labels.long().clamp(0, self.classes - 1)
        return engine.Plan(
            self.block,
            samples,
            masks,
            proxies,
            (target,),
            weights=weights,
            needs_masks=self.needs_masks,
            unit=later,
            gallery_unit=later and not several,
            products=products,
        )

    def shared(self, labels: Tensor, weights: Tensor | None, like: Tensor) -> tuple[Tensor, ...]:
        """What every block of proxies needs to know of the whole batch, in the type of ``like``."""
        return ()

    def pair_masks(self, plan: engine.Plan, dot: Tensor) -> tuple[Tensor, Tensor]:
        """Which pairs of sample and proxy are positive and which negative."""
        return plan.masks.all_rows(dot)

    # ------------------------------------------------------------------------------------------ settings, errors

    def parameter_groups(self, lr: float) -> list[dict[str, Any]]:
        """Groups for an optimiser whose other parameters learn at ``lr``."""
        return settings.groups(self, lr)

    @property
    def settings(self) -> dict[str, Any]:
        """What ``losses.create(loss.name, **loss.settings)`` needs to make this loss again, or its class where no name of
        ``losses.LOSSES`` stands for it."""
        return settings.read(self, Common)

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self.settings.items())

    def _no_columns(self, name: str) -> str:
        if name not in Batch._fields:
            return checks.unknown(f"{self.name}: argument", name, ("weights", "reduction"))
        return (
            f"{name} must not be given to {self.name}, got one: proxy losses compare samples with proxies and have no "
            f"gallery and no masks; leave it out, or use a pair loss."
        )

    def check_call(
        self,
        embeddings: Tensor,
        labels: Tensor | None,
        columns: Collection[Any] = (),
        weights: Tensor | None = None,
        others: Iterable[str] = (),
    ) -> None:
        """Raise unless the loss can be called so; ``columns``, ``others``: arguments that only pair losses take."""
        for name in ["gallery"] * bool(columns) + list(others):
            raise TypeError(self._no_columns(name))
        checks.vectors("embeddings", embeddings)
        if embeddings.shape[1] != self.dim:
            raise ValueError(
                f"embeddings must have dim {self.dim} for {self.name}, got {embeddings.shape[1]}; create the "
                f"loss with dim={embeddings.shape[1]}."
            )
        if embeddings.device != self.proxies.device:
            raise ValueError(
                f"embeddings must be on the device of the proxies ({self.proxies.device}), got "
                f"{embeddings.device}; move the loss with loss.to(device)."
            )
        checks.labels("labels", labels, len(embeddings), "embeddings", embeddings.device)
        if self.labels_are_proxies and labels is not None:
            checks.label_range("labels", labels, self.classes)
        if weights is not None:
            checks.sample_weights("weights", weights, len(embeddings))


def _of_batch(loss: ProxyLoss, embeddings: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The value of a loss for the tensors of one call."""
    return loss._value(embeddings, labels, weights)
