"""Loads torch and runs once what it loads lazily, in one thread, so that a forked child starts warm.

The process that calls this must stay single-threaded: a fork copies only the calling thread, and a lock that another
one held would stay locked in the child for ever.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Final

import torch

_LAZY: Final = (
    "torch.nn.functional",
    "torch.autograd.functional",
    "torch.func",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.nn.parallel",
    "inspect",
    "json",
    "random",
    "dataclasses",
)

_CAPTURES: Final = 4
"""What the figures below were measured with."""

_USUAL: Final = """\
import torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
h = x * 2
h.sum().backward()
told = f"{x.grad} {h.grad_fn}"
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = (model(torch.ones(3, 2)) ** 2).mean()
    loss.backward()
    optimizer.step()
"""


def warm() -> None:
    """Everything at once.

    The random state is put back, so that a child's first number is that of a fresh process.
    """
    for step in (first, *rest()):
        step()


def first() -> None:
    """Load what every program needs: torch in one thread, a backward pass, a captured run."""
    torch.set_num_threads(1)
    _preserve_random_state(_capture_once)


def rest() -> tuple[Callable[[], None], ...]:
    """List what many programs need, in steps of at most a second, the commonest first. A fork may come between two.

    The first optimizer imports `torch._dynamo`, which takes longer than all else together.
    """
    imports = [partial(_import, module) for module in _LAZY]
    return (partial(_preserve_random_state, _train_once), partial(_preserve_random_state, _capture_again), *imports)


def rehearse() -> None:
    """In a forked process that still waits for its program: what a program of a few lines writes to is its own then.

    A page is copied when it is first written to, and even reading an object of Python's writes to it.
    """
    _preserve_random_state(_capture_usual)


def _import(module: str) -> None:
    importlib.import_module(module)


def _preserve_random_state(step: Callable[[], None]) -> None:
    """Run a step and put the random state back."""
    state = torch.get_rng_state()
    try:
        step()
    finally:
        torch.set_rng_state(state)


def _train_once() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer = kind(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(torch.randn(2, 3)), torch.zeros(2, 1))
        loss.backward()
        optimizer.step()
    weight = torch.ones(2, requires_grad=True)
    torch.autograd.grad((weight * weight).sum(), weight, create_graph=True)


def _capture_again() -> None:
    """Capture typical first programs: what that makes once, allocates and orders is then ready in a child.

    Of a child that ran five lines it took 10 of 26 ms of CPU time and 2 of the 12 MiB of its private pages.
    """
    for _ in range(_CAPTURES):
        _capture_usual()


def _capture_usual() -> None:
    from backprobe.capture.program.launch import run_source

    run_source(_USUAL)


def _capture_once() -> None:
    """Capture one run, so that the swapped sources are in `linecache` and every path of Backprobe ran."""
    from backprobe.capture.program.launch import run_source

    run_source("import torch\nx = torch.ones(2, requires_grad=True)\n(x * x).sum().backward()\ng = x.grad\n")
