"""A GPU that is not there, as far as torch's compiler asks for one: enough to see the programs it would write for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.utils._triton
from torch._dynamo import device_interface
from torch._inductor import scheduler
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

TARGET = GPUTarget("cuda", 90, 32)
H200 = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    warp_size=32,
    total_memory=141 * 2**30,
    L2_cache_size=50 * 2**20,
    shared_memory_per_block=48 * 2**10,
    shared_memory_per_block_optin=227 * 2**10,
    shared_memory_per_multiprocessor=228 * 2**10,
    gcnArchName="",
)


class _Interface(device_interface.DeviceInterface):
    """What the compiler asks of a kind of device."""

    class Worker(device_interface.DeviceInterface.Worker):
        """The same for the processes that compile."""

        get_device_properties = staticmethod(lambda device=None: H200)
        current_device = staticmethod(lambda: 0)

    current_device = staticmethod(lambda: 0)
    device_count = staticmethod(lambda: 1)
    is_available = staticmethod(lambda: True)
    is_bf16_supported = staticmethod(lambda including_emulation=False: True)
    is_triton_capable = staticmethod(lambda device=None: True)
    raise_if_triton_unavailable = staticmethod(lambda device=None: None)
    get_compute_capability = staticmethod(lambda device=None: 90)
    get_device_properties = staticmethod(lambda device=None: H200)


class _Driver:
    """What the kernel language asks of a driver that nothing is run by."""

    def get_current_target(self) -> GPUTarget:
        return TARGET

    def get_current_device(self) -> int:
        return 0


def pretend() -> None:
    """For the rest of this process."""
    found: Any = torch.cuda
    found.get_device_properties = lambda device=None: H200
    found.get_device_capability = lambda device=None: (H200.major, H200.minor)
    found.current_device = lambda: 0
    found.device_count = lambda: 1
    device_interface.get_interface_for_device("cpu")  # the first question puts those in place that torch knows
    for name in ("cuda", "cuda:0"):
        device_interface.register_interface_for_device(name, _Interface)
    for module in (torch.utils._triton, scheduler):
        module.has_triton = lambda *_: True  # type: ignore[attr-defined]
    driver.set_active(_Driver())
