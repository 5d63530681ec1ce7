"""How many instructions the compiled step of a loss takes for each entry of its matrix on a Hopper GPU, counted without one.

    python benchmarks/instructions.py                          every loss of engine.py that is compiled
    python benchmarks/instructions.py multi_similarity --verbose

What is counted is the machine code that torch's compiler and the kernel language make of each stage for a block of 1,024
rows of 32,768 in bfloat16. A step of a large batch is bound by it, so a change can be judged before a GPU is at hand: on an
H200 an instruction for every entry of such a block takes 1.1 microseconds at best, one of *half rate* (choices, comparisons,
whole numbers) twice that, one of *special* (exponentials, roots, reciprocals) eight times. What a branch passes over counts.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pretended_gpu
import torch
import triton
from torch import fx
from torch._inductor import config
from torch._inductor.compile_fx import _recursive_post_grad_passes
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from triton.compiler import ASTSource

from nearkin import losses, reductions
from nearkin.engine import compiled, stages
from nearkin.engine.step import Wanted
from nearkin.masks import Parts

ROWS, COLUMNS, DIM = 1024, 32768, 512
LOSSES: dict[str, dict[str, Any]] = {
    "multi_similarity": {},
    "contrastive": {},
    "margin": {"miner": None},
    "binomial_deviance": {},
    "lifted_structure": {"form": "generalized"},
    "supcon": {},
}
HALF_RATE = (
    "FSEL",
    "FSETP",
    "FSET",
    "FMNMX",
    "ISETP",
    "PLOP3",
    "LOP3",
    "IADD3",
    "SEL",
    "PRMT",
    "SHF",
    "LEA",
    "I2FP",
    "F2FP",
)
SPECIAL = "MUFU"
DISASSEMBLER = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
Stage = tuple[fx.GraphModule, dict[str, Any]]


def stages_of(name: str, settings: dict[str, Any]) -> list[Stage]:
    """The stages of the step of a loss for one block, and what the compiler is told for each."""
    found: list[Stage] = []

    def note(graph: fx.GraphModule, options: Any = None, **_: Any) -> fx.GraphModule:
        found.append((graph, options or {}))
        return graph

    replaced: list[tuple[Any, str, Callable[..., Any]]] = [
        (torch, "compile", note),
        (stages, "worth", lambda matrix: True),
        # Tensors that only pretend are traced as a CPU's; what a CPU alone must heed is left out.
        (reductions, "_exp_of_negative", torch.exp),
    ]
    before = [getattr(where, name) for where, name, _ in replaced]
    for where, key, stand_in in replaced:
        setattr(where, key, stand_in)
    try:
        with FakeTensorMode():
            _trace(losses.create(name, engine="compiled", **settings))
    finally:
        for (where, key, _), own in zip(replaced, before, strict=True):
            setattr(where, key, own)
    return found


def _trace(loss: Any) -> None:
    """Let the engine cut and compile the step of a block."""
    for key, parameter in list(loss._parameters.items()):
        loss._parameters[key] = torch.nn.Parameter(torch.empty(parameter.shape))
    embeddings = torch.empty(COLUMNS, DIM, dtype=torch.bfloat16, requires_grad=True)
    plan = loss.plan(embeddings, torch.empty(COLUMNS, dtype=torch.int64))
    plan = dataclasses.replace(plan, products=torch.bfloat16)
    own = compiled.Compiled(plan, "inductor").own
    parts = plan.masks.parts(0, ROWS, own) if plan.needs_masks else Parts()
    given = [torch.empty(ROWS, COLUMNS, dtype=torch.bfloat16), torch.empty(ROWS), *(x for x in parts if x is not None)]
    given += [x[:ROWS].detach() for x in plan.row] + [x.detach() for x in plan.shared]
    wanted = Wanted(True, True, tuple(x.requires_grad for x in plan.row), tuple(x.requires_grad for x in plan.shared))
    compiled._compile(plan, given, tuple(x is None for x in parts), wanted, "inductor")


def programs(stage: Stage) -> list[tuple[str, str]]:
    """Names and sources of the kernels that the compiler writes for a stage."""
    graph, options = stage
    for node in graph.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cuda", 0)}
    graph.recompile()
    with config.patch(options), FakeTensorMode() as mode, torch.no_grad():
        wanted = [x.meta["val"] for x in graph.graph.nodes if x.op == "placeholder"]
        given = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda:0") for x in wanted]
        traced = make_fx(graph, select_decomp_table(), tracing_mode="fake")(*given)
        with V.set_fake_mode(mode):
            _recursive_post_grad_passes(traced, is_inference=True)
            lowering = GraphLowering(traced, example_inputs=given, is_inference=True)
            with V.set_graph_handler(lowering), V.set_debug_handler(DebugContext()):
                lowering.run(*given)
                code = lowering.codegen()[0].value
    return re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.S)


def counted(name: str, source: str) -> tuple[float, float, float, collections.Counter[str]]:
    """Instructions of a kernel for each entry: all, of half rate, special; and by kind."""
    kernel, meta = _loaded(name, source)
    signature, reduces = meta["signature"], "R0_BLOCK" in meta["signature"]
    # The sizes that the compiler's rules choose for long rows, and for entries one by one.
    constants, warps = ({"XBLOCK": 1, "R0_BLOCK": 2048}, 16) if reduces else ({"XBLOCK": 1024}, 4)
    made = triton.compile(
        ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=meta["configs"][0]),
        target=pretended_gpu.TARGET,
        options={"num_warps": warps, "num_stages": 1},
    )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        text = subprocess.run([DISASSEMBLER, "-c", file.name], capture_output=True, text=True, check=True).stdout
    body = _loop(text) if reduces else [kind for kind, _ in _read(text)]
    per = constants["XBLOCK"] * constants.get("R0_BLOCK", 1) / (32 * warps)
    kinds = collections.Counter(body)
    half = sum(number for kind, number in kinds.items() if kind in HALF_RATE)
    return len(body) / per, half / per, kinds[SPECIAL] / per, kinds


def _loaded(name: str, source: str) -> tuple[Any, dict[str, Any]]:
    """A kernel without the compiler's wrapper, which wants a GPU, and what that was told."""
    source = source.replace("triton_helpers.set_driver_to_gpu()", "")
    source = re.sub(
        r"@triton_heuristics\.\w+\((.*?)\n\)\n@triton\.jit", r"META = dict(\1)\n@triton.jit", source, flags=re.S
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        getattr(module, name).src  # noqa: B018  read while the file is there
    return getattr(module, name), module.META["triton_meta"]


def _read(text: str) -> Iterator[tuple[str, str]]:
    """Kind and whole of every instruction; labels have the kind "" and end in a colon."""
    for line in text.splitlines():
        if re.match(r"\.L_\w+:", line.strip()):
            yield "", line.strip()
        elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            words = re.sub(r"^@!?U?P\w+\s+", "", found[1].strip())
            yield words.split()[0].split(".")[0], words


def _loop(text: str) -> list[str]:
    """The kinds of the instructions of the longest loop."""
    longest: list[str] = []
    places: dict[str, int] = {}
    kinds: list[str] = []
    for kind, words in _read(text):
        if not kind:
            places[words[:-1]] = len(kinds)
            continue
        kinds.append(kind)
        to = re.search(r"\((\.L_\w+)\)", words)
        if kind == "BRA" and to and to[1] in places and len(kinds) - places[to[1]] > len(longest):
            longest = kinds[places[to[1]] :]
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("losses", nargs="*", help=f"of {', '.join(LOSSES)} (default: all)")
    parser.add_argument("--verbose", action="store_true", help="instructions by kind")
    arguments = parser.parse_args()
    if unknown := set(arguments.losses) - set(LOSSES):
        parser.error(f"losses must be some of {', '.join(LOSSES)}, got {', '.join(sorted(unknown))}")
    pretended_gpu.pretend()
    print(f"{'loss':20s} stage    all  half rate  special")
    for name in arguments.losses or LOSSES:
        total = 0.0
        for number, stage in enumerate(stages_of(name, LOSSES[name])):
            for kernel, source in programs(stage):
                every, half, special, kinds = counted(kernel, source)
                total += every
                print(f"{name:20s} {number:5d} {every:6.1f} {half:10.1f} {special:8.1f}", flush=True)
                if arguments.verbose:
                    print("   ", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common(16)))
        print(f"{name:20s}   all {total:6.1f}")


if __name__ == "__main__":
    main()
