"""How many rows a block has, and when a matrix is small enough to be made whole."""

from __future__ import annotations

import torch

from nearkin import kernels

# Entries of one block. On a CPU the few matrices that a row function makes of it should stay in the cache, and be small
# beside the embeddings; yet products of fewer than 256 rows are slow.
CPU_BLOCK = 2**19
GPU_BLOCK = 2**25
# Up to this many entries one dense pass is as lean and has fewer launches.
CPU_DENSE = 2**20
GPU_DENSE = 2**24
# Up to this many a GPU waits for the host, unless the call is recorded; what a recording holds is small.
GPU_RECORDED = 2**20
RECORDED = "dense:recorded"
# From here on a GPU saves in some hundred calls what compiling takes once.
GPU_COMPILED = 2**26


def choose(rows: int, columns: int, device: torch.device) -> str:
    """What "auto" means here: dense while the matrix is small for the device, on a GPU recorded if it is very small; blocked
    beyond, compiled where a GPU has much to do."""
    if device.type != "cuda":
        return "dense" if rows * columns <= CPU_DENSE else "blocked"
    if rows * columns <= GPU_DENSE:
        return RECORDED if rows * columns <= GPU_RECORDED else "dense"
    return "compiled" if rows * columns >= GPU_COMPILED and kernels.usable() else "blocked"


def block_rows(rows: int, columns: int, device: torch.device) -> int:
    """Rows of a block, even so that blocks have at most two shapes."""
    m = max(1, columns)
    if device.type == "cuda":
        # Products of fewer than 1,024 rows are slow, those of fewer than 256 wait for the columns to come from memory.
        most = max(16, GPU_BLOCK // m, min(1024, 2**27 // m), min(256, 2**28 // m))
    else:
        # At least 512 rows, or 256, or 128, while these are no great memory.
        most = max(16, CPU_BLOCK // m, min(512 if m <= 2048 else 256, 2**20 // m), min(128, 2**23 // m))
    blocks = -(-rows // most)
    return -(-rows // blocks)
