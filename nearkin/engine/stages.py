"""A traced step cut where numbers of whole rows come back to the matrix, so that each part is one walk over it.

A compiler makes one program of everything between reading the matrix and writing it. What a row needs only once (a
logarithm of its sum, a quotient) is then worked out again for every entry, and takes longer than reading the entry. So the
first stage ends with the first sums of rows and what follows from them, the next one begins with those at hand, and so on.
Entries themselves are not handed on but worked out again from the inner products: writing and reading a matrix costs more
than the arithmetic of a stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

LEAST = 2**22
"""Entries of a matrix from which stages are worth their launches."""
FEW = 8
"""Columns of a row up to which writing into them is a comparison with every column, which needs no matrix of its own."""

aten = torch.ops.aten
Compiler = Callable[[fx.GraphModule], Callable[..., Any]]


def worth(matrix: Tensor) -> bool:
    """Whether a step over this matrix had better be cut: on a CPU a program works row by row, so nothing is done twice."""
    return matrix.is_cuda and matrix.numel() >= LEAST


def staged(traced: fx.GraphModule, given: list[Tensor], over: int, compiler: Compiler) -> Callable[..., list[Any]]:
    """What the graph computes, each stage compiled by itself.

    The first of ``given`` is the matrix; result number ``over`` is written over it where it is made last, fits, and no other
    result is a view of the matrix.
    """
    graph = _small_steps(traced, given)
    order = list(graph.graph.nodes)
    inputs, results = [x for x in order if x.op == "placeholder"], list(order[-1].args[0])
    cut = _Cut(order, given[0].numel())
    fits = _alike(inputs[0], results[over]) and not any(
        _origin(x) is inputs[0] for x in results if x is not results[over]
    )
    parts = []
    for level, gives in enumerate(cut.stages(results)):
        final = level == cut.last and results[over] in gives and fits
        for group in cut.apart(gives, results[over], level) if final else [gives]:
            needed, takes = cut.walk(group, level)
            written = final and results[over] in group
            handed = [x for x in order if x in takes or (written and x is inputs[0])]
            program = _program(graph, handed, [x for x in order if x in needed], group)
            if written:
                _write_over(program, handed.index(inputs[0]), group.index(results[over]))
            parts.append((handed, group, compiler(program)))

    def run(*tensors: Tensor) -> list[Any]:
        known: dict[fx.Node, Any] = dict(zip(inputs, tensors, strict=True))
        for handed, gives, program in parts:
            known.update(zip(gives, program(*(known[x] for x in handed)), strict=True))
        return [known[x] if isinstance(x, fx.Node) else x for x in results]

    return run


def _small_steps(traced: fx.GraphModule, given: list[Tensor]) -> fx.GraphModule:
    """The same graph without writing in place and in small steps, so that any entry can be worked out again."""
    from torch._decomp import get_decompositions
    from torch.func import functionalize
    from torch.fx.experimental.proxy_tensor import make_fx

    table: dict[Any, Callable[..., Any]] = {
        **get_decompositions([aten._softmax, aten._softmax_backward_data, aten._log_softmax]),
        aten._to_copy.default: _to_copy,
        aten.scatter.src: _scatter,
        aten.scatter.value: _scatter,
        aten.scatter_add.default: _scatter_add,
    }
    plain = functionalize(traced, remove="mutations")
    found: fx.GraphModule = make_fx(plain, table, tracing_mode="fake")(*given)
    for node in found.graph.nodes:
        if node.target in (aten.detach.default, aten.alias.default):  # nothing is written in place here
            node.replace_all_uses_with(node.args[0])
    found.graph.eliminate_dead_code()
    found.recompile()
    return found


def _to_copy(values: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """1 where true, 0 where not: a choice between two numbers is one instruction, turning a bit into a number two."""
    if values.dtype != torch.bool or dtype is None or not dtype.is_floating_point:
        return NotImplemented
    one, none = (torch.full((), x, dtype=dtype, device=values.device) for x in (1.0, 0.0))
    return torch.where(values, one, none)


def _scatter(matrix: Tensor, dim: int, columns: Tensor, source: Any) -> Tensor:
    """A matrix with other values in few columns of each row."""
    if not _few(matrix, dim, columns):
        return NotImplemented
    place = torch.arange(matrix.shape[1], device=matrix.device)
    for k in range(columns.shape[1]):
        value = source[:, k : k + 1] if isinstance(source, Tensor) else source
        matrix = torch.where(place == columns[:, k : k + 1], value, matrix)
    return matrix


def _scatter_add(matrix: Tensor, dim: int, columns: Tensor, source: Tensor) -> Tensor:
    """A matrix with something added in few columns of each row."""
    if not _few(matrix, dim, columns):
        return NotImplemented
    place = torch.arange(matrix.shape[1], device=matrix.device)
    for k in range(columns.shape[1]):
        matrix = matrix + torch.where(place == columns[:, k : k + 1], source[:, k : k + 1], 0)
    return matrix


def _few(matrix: Tensor, dim: int, columns: Tensor) -> bool:
    return matrix.dim() == 2 and dim % 2 == 1 and len(columns) == len(matrix) and columns.shape[1] <= FEW


class _Cut:
    """The stage of every node of a graph over a matrix of so many entries."""

    def __init__(self, order: Sequence[fx.Node], matrix: int) -> None:
        self.order, self.matrix = order, matrix
        self.level: dict[fx.Node, int] = {}
        self.reduced: set[fx.Node] = set()
        """Numbers of rows that come from the matrix."""
        for node in order:
            if node.op not in ("placeholder", "output"):
                self._place(node)
        self.last = 0

    def _place(self, node: fx.Node) -> None:
        """One stage later than the row numbers that an entry of the matrix needs."""
        large, level = self._large(node), 0
        for x in _read(node):
            level = max(level, self.level.get(x, 0) + (large and x in self.reduced))
            if not large and (x in self.reduced or self._large(x)):
                self.reduced.add(node)
        self.level[node] = level

    def stages(self, results: list[Any]) -> list[list[fx.Node]]:
        """Of each stage the nodes it gives to others."""
        wanted = {x for x in results if isinstance(x, fx.Node) and x.op != "placeholder"}
        self.last = max((self.level[x] for x in wanted), default=0)
        found = []
        for level in range(self.last, -1, -1):
            gives = [x for x in self.order if x in wanted and self.level[x] == level]
            wanted |= {x for x in self.walk(gives, level)[1] if x.op != "placeholder"}
            found.append(gives)
        return found[::-1]

    def apart(self, gives: list[fx.Node], over: fx.Node, level: int) -> list[list[fx.Node]]:
        """Sums, and in a program of its own what is written over the matrix: a compiler that is asked for both at once keeps
        a second matrix, so that the sums still find the first. Not where both need what must not be worked out twice."""
        rest = [x for x in gives if x is not over]
        both = self.walk(rest, level)[0] & self.walk([over], level)[0]
        if any(x in self.reduced for x in rest) and all(map(_repeatable, both)):
            return [rest, [over]]
        return [gives]

    def walk(self, gives: list[fx.Node], level: int) -> tuple[set[fx.Node], set[fx.Node]]:
        """What a stage works out itself, and what it is handed: inputs, and what earlier stages had better do once."""
        needed: set[fx.Node] = set()
        takes: set[fx.Node] = set()
        waiting = list(gives)
        while waiting:
            node = waiting.pop()
            if node in needed or node in takes:
                continue
            early = self.level.get(node, 0) < level and (node in self.reduced or not _repeatable(node))
            if node.op == "placeholder" or early:
                takes.add(node)
            else:
                needed.add(node)
                waiting.extend(node.all_input_nodes)
        return needed, takes

    def _large(self, node: fx.Node) -> bool:
        value = node.meta.get("val")
        return isinstance(value, Tensor) and value.numel() >= self.matrix


def _program(
    graph: fx.GraphModule, handed: list[fx.Node], needed: list[fx.Node], gives: list[fx.Node]
) -> fx.GraphModule:
    """A graph of its own that makes of what it is handed what it gives."""
    own = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in handed:
        copies[node] = own.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in needed:
        copies[node] = own.node_copy(node, copies.__getitem__)
    own.output(tuple(copies[x] for x in gives))
    return fx.GraphModule(graph, own)


def _alike(matrix: fx.Node, result: Any) -> bool:
    """Whether a result has the shape and type of the matrix, so that it can stand in its place."""
    if not isinstance(result, fx.Node):
        return False
    one, other = matrix.meta["val"], result.meta["val"]
    return bool(one.shape == other.shape and one.dtype == other.dtype)


def _write_over(program: fx.GraphModule, matrix: int, result: int) -> None:
    """Let a program write one of its results over the matrix that it reads."""
    nodes = list(program.graph.nodes)
    given, out = [x for x in nodes if x.op == "placeholder"][matrix], nodes[-1]
    results = list(out.args[0])
    with program.graph.inserting_before(out):
        results[result] = program.graph.call_function(aten.copy_.default, (given, results[result]))
    out.args = (tuple(results),)
    program.recompile()


def _origin(node: Any) -> Any:
    """What a result is a view of, or itself."""
    while isinstance(node, fx.Node) and node.op == "call_function" and getattr(node.target, "is_view", False):
        node = node.all_input_nodes[0]
    return node


def _repeatable(node: fx.Node) -> bool:
    """Whether a value can be worked out twice, with the same result and at the cost of arithmetic only."""
    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded in tags:
        return False
    return torch.Tag.pointwise in tags or node.target in _VIEWS or not _read(node)


def _read(node: fx.Node) -> list[fx.Node]:
    """The nodes whose numbers a node needs, not only their shape or type."""
    return [] if node.target in _LIKE else node.all_input_nodes


_VIEWS = {
    aten.unsqueeze.default, aten.expand.default, aten.view.default, aten.squeeze.dim, aten.slice.Tensor,
    aten._to_copy.default, aten.clone.default,
}  # fmt: skip
_LIKE = {
    aten.new_full.default, aten.full_like.default, aten.zeros_like.default, aten.ones_like.default,
    aten.new_zeros.default, aten.new_ones.default, aten.new_empty.default, aten.empty_like.default,
}  # fmt: skip
