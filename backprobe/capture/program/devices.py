"""The CUDA devices of a process that waits for one run: started, bounded, named. Never asked in one that forks."""

from __future__ import annotations

import torch


def ready_devices(memory_fraction: float) -> tuple[str, ...]:
    """Start CUDA on every visible device, so that the run need not wait for it; their names come back.

    Args:
        memory_fraction: Of each device's memory, what this process may take, in ``(0, 1]``. torch's allocator keeps to
            it; a program that calls the driver itself need not.

    Raises:
        RuntimeError: torch finds no device, or one cannot be used.
    """
    if not torch.cuda.is_available():
        raise RuntimeError(
            "torch finds no CUDA device here: look at CUDA_VISIBLE_DEVICES, the driver and torch's build"
        )
    for index in range(torch.cuda.device_count()):
        torch.cuda.set_per_process_memory_fraction(memory_fraction, index)
        x = torch.ones(8, 8, device=f"cuda:{index}", requires_grad=True)
        (x @ x).sum().backward()
        torch.cuda.synchronize(index)
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))
