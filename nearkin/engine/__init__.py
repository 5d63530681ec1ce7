"""Runs a row-wise loss dense, blocked or compiled: the same value and the same gradient, different memory and speed.

A row-wise loss is a function of one block of rows of the pair matrix. *dense* gives it all rows at once and leaves the
rest to autograd. *blocked* takes some rows at a time, forms their gradient on the spot and keeps nothing of size n x m.
*compiled* is blocked with value and slopes of a block made by one compiled step, masks and all. On a GPU a compiled call,
and a dense one of a small batch, is recorded as a whole and replayed.
"""

from nearkin.engine.dense import dense
from nearkin.engine.facts import facts
from nearkin.engine.plan import NO_SIZES, Kernel, Plan, RowFunction, RowResult, Sizes
from nearkin.engine.product import factors, inner_products
from nearkin.engine.recording import forget, possible, replay
from nearkin.engine.run import ENGINES, REDUCTIONS, check, run, settled
from nearkin.engine.size import block_rows, choose

__all__ = [
    "ENGINES",
    "NO_SIZES",
    "REDUCTIONS",
    "Kernel",
    "Plan",
    "RowFunction",
    "RowResult",
    "Sizes",
    "block_rows",
    "check",
    "choose",
    "dense",
    "factors",
    "facts",
    "forget",
    "inner_products",
    "possible",
    "replay",
    "run",
    "settled",
]
