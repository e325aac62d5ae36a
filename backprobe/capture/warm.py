"""Loads torch and runs once what it loads lazily, in one thread, so that a forked child starts warm.

The process that calls this must stay single-threaded: a fork copies only the calling thread, and a lock that another
one held would stay locked in the child for ever.
"""

from __future__ import annotations

import importlib
from typing import Final

import torch

_LAZY: Final = (
    "torch.optim",
    "torch.utils.data",
    "torch.utils.checkpoint",
    "torch.func",
    "torch.autograd.functional",
    "torch.nn.functional",
    "torch.nn.parallel",
    "inspect",
    "json",
    "random",
    "dataclasses",
)


def warm() -> None:
    """Import what programs import and compute one backward pass and one step of each common optimizer.

    The random state is put back, so that a child's first number is that of a fresh process.
    """
    torch.set_num_threads(1)
    state = torch.get_rng_state()
    for module in _LAZY:
        importlib.import_module(module)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = kind(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(torch.randn(2, 3)), torch.zeros(2, 1))
        loss.backward()
        optimizer.step()
    weight = torch.ones(2, requires_grad=True)
    torch.autograd.grad((weight * weight).sum(), weight, create_graph=True)
    _capture_once()
    torch.set_rng_state(state)


def _capture_once() -> None:
    """One captured run, so that the swapped sources are in `linecache` and every path of ours ran."""
    from backprobe.capture.launch import run_source

    run_source("import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\ng = x.grad\n")
