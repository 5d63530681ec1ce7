"""The engine's one entry: which way a plan is run."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from nearkin import checks
from nearkin.engine.blocked import blocked
from nearkin.engine.compiled import Compiled, ours
from nearkin.engine.dense import dense
from nearkin.engine.plan import Plan
from nearkin.engine.size import RECORDED, choose

ENGINES = ("auto", "dense", "blocked", "compiled")
REDUCTIONS = ("mean", "none")


def check(name: str, engine: str, rowwise: bool, why: str) -> None:
    """Raise unless the engine is known and fits the loss."""
    kind = engine.split(":")[0] if isinstance(engine, str) else engine
    if kind not in ENGINES:
        raise ValueError(checks.unknown(f"{name}: engine", engine, ENGINES))
    if not rowwise and kind in ("blocked", "compiled"):
        raise ValueError(f"{name} runs dense only, got engine={engine!r}: {why}; use engine='auto' or 'dense'.")


def settled(
    engine: str, shape: tuple[int, int], device: torch.device, owner: object = None, *, foreign: bool = False
) -> str:
    """The engine for a matrix of that shape: as named, or what "auto" means there.

    "auto" compiles and records nothing that somebody else wrote, be it the ``owner`` of a plan or some part of it
    (``foreign``): both read Python once.
    """
    if engine != "auto":
        return engine
    foreign = foreign or (owner is not None and not ours(owner))
    found = choose(*shape, device)
    return {"compiled": "blocked", RECORDED: "dense"}.get(found, found) if foreign else found


def run(plan: Plan, engine: str = "auto", reduction: str = "mean") -> Tensor:
    """The loss of a plan: a scalar, or with reduction "none" one value per row whose mean is the scalar.

    ``engine`` may name the compiler's backend, as in "compiled:aot_eager". "dense:recorded" is dense for a plan; a loss
    records the whole call.
    """
    kind, _, backend = settled(engine, plan.masks.shape, plan.source.device).partition(":")
    if kind == "dense":
        return dense(plan, reduction)
    if kind == "blocked":
        return blocked(dataclasses.replace(plan, products=None), None, reduction)
    return blocked(plan, Compiled(plan, backend or "inductor"), reduction)
