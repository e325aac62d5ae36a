"""Random small programs, and what a plain interpreter that reads every flag after every statement says of them."""

from __future__ import annotations

import contextlib
import random
import warnings
from dataclasses import dataclass
from typing import Any

import torch

HEADER = (
    "import torch\n"
    "def double(t):\n    u = t * 2\n    return u + 1\n"
    "def scale_(t):\n    with torch.no_grad():\n        t.mul_(1.5)\n    return t\n"
    "def fit(t):\n    for _ in range(2):\n        l = (t * t).sum()\n        l.backward()\n    return l\n"
)
NAMES = ("a", "b", "c", "d", "e")
STATEMENTS = (
    "{x} = torch.tensor([1.0, 2.0], requires_grad={flag})",
    "{x} = torch.tensor(3.0, requires_grad={flag})",
    "{x} = {y} * {z}",
    "{x} = {y} + {z}",
    "{x} = {y}.exp()",
    "{x} = {y}.sum()",
    "{x} = {y}.relu()",
    "{x} = {y}.detach()",
    "{x} = {y}.clone()",
    "{x} = {y}.to(torch.{dtype})",
    "{x} = {y}[0:1]",
    "{x} = {y}.view(-1)",
    "{x} = {y}",
    "{x}, {y} = {y}, {x}",
    "{x} = double({y})",
    "{x} = scale_({y})",
    "{x} = fit({y})",
    "{x} = [{y} * 2, {z}][0]",
    "{x}, {z} = torch.stack([{y}, {y} * 3]).unbind()",
    "{x}.retain_grad()",
    "{x}.requires_grad_({flag})",
    "{x}.requires_grad = {flag}",
    "{x}.mul_(2.0)",
    "{x} += 1",
    "{x}[0] = 0.5",
    "{x}.detach_()",
    "{x}.data.mul_(2)",
    "torch.no_grad()(lambda: {x}.add_(1))()",
    "{x} = torch.no_grad()(lambda: {y} * 2)()",
    "{x}.sum().backward()",
    "{x}.sum().backward(retain_graph=True)",
    "{x}.sum().backward(create_graph=True)",
    "{x}.backward({y})",
    "{x}.sum().backward(inputs=[{y}])",
    "{x}, = torch.autograd.grad({y}.sum(), {z}, retain_graph={flag})",
    "{x} = torch.autograd.grad({y}.sum(), {z}, create_graph=True)[0]",
    "{x}.grad = None",
    "{x}.grad = torch.ones_like({x})",
    "{x}.grad.zero_()",
    "{x} = {y}.grad",
    "torch.optim.SGD([{x}], lr=0.1).step()",
    "torch.optim.SGD([{x}, {y}], lr=0.1).zero_grad()",
    "torch.optim.SGD([{x}], lr=0.1).zero_grad(set_to_none=False)",
    "del {x}",
    "{x} = None",
)


def program(seed: int, statements: int) -> str:
    """A program whose every statement stands on one line; what it raises passes."""
    chance = random.Random(seed)
    lines = [f"{name} = torch.tensor([{i + 1}.0, 0.5], requires_grad={i < 3})" for i, name in enumerate(NAMES)]
    for _ in range(statements):
        x, y, z = (chance.choice(NAMES) for _ in range(3))
        text = chance.choice(STATEMENTS).format(
            x=x, y=y, z=z, flag=chance.random() < 0.6, dtype=chance.choice(("float64", "float32", "complex64"))
        )
        lines.append(f'with __import__("contextlib").suppress(Exception): {text}')
    return HEADER + "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Truth:
    """One tensor after one statement; `grad` is "not-read" where reading it would warn."""

    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    version: int
    grad_fn: str | None
    value: Any
    grad: Any


def truth(source: str) -> dict[tuple[int, str], Truth]:
    """By line and name, what plain torch shows."""
    found: dict[tuple[int, str], Truth] = {}
    space: dict[str, Any] = {}
    head = HEADER.count("\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(HEADER, space)
        for offset, line in enumerate(source.splitlines()[head:]):
            with contextlib.suppress(Exception):
                exec(line, space)
            for name in NAMES:
                tensor = space.get(name)
                if isinstance(tensor, torch.Tensor):
                    with contextlib.suppress(RuntimeError):  # a view that torch no longer answers for
                        found[head + offset + 1, name] = _read(tensor)
    return found


def _read(tensor: torch.Tensor) -> Truth:
    readable = tensor.is_leaf or tensor.retains_grad
    gradient = tensor.grad if readable else "not-read"
    node = tensor.grad_fn
    return Truth(
        is_leaf=tensor.is_leaf,
        requires_grad=tensor.requires_grad,
        retains_grad=tensor.retains_grad,
        version=tensor._version,
        grad_fn=None if node is None else type(node).__name__,
        value=tensor.tolist(),
        grad=gradient.tolist() if isinstance(gradient, torch.Tensor) else gradient,
    )
