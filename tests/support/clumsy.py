"""Instruments that a program can tell, to put in place of the taps: a test that they do not disturb proves nothing."""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def hooked() -> Iterator[None]:
    """Python functions around torch's, hooks on tensors, tensors kept, a random number taken, a profile function."""
    forward, backward, kept = torch.nn.Module.__call__, torch.Tensor.backward, []

    def call_module(module: Any, *args: Any, **kwargs: Any) -> Any:
        out = forward(module, *args, **kwargs)
        if isinstance(out, torch.Tensor) and out.requires_grad:
            out.register_hook(kept.append)
            kept.append((out, out.norm()))
        module.seen = True
        return out

    def went_back(tensor: Any, *args: Any, **kwargs: Any) -> None:
        tensor.retain_grad()
        kept.append(tensor)
        torch.rand(1)
        for node, _ in tensor.grad_fn.next_functions if tensor.grad_fn else ():
            if node is not None:
                node.register_prehook(kept.extend)
            for leaf, _ in node.next_functions if node else ():
                if getattr(leaf, "variable", None) is not None and leaf.variable.grad is not None:
                    leaf.variable.grad = leaf.variable.grad.clone()
        backward(tensor, *args, **kwargs)

    torch.nn.Module.__call__, torch.Tensor.backward = call_module, went_back
    sys.modules["__main__"].__dict__["__bp_kept__"] = kept
    sys.setprofile(lambda *_: None)
    try:
        yield
    finally:
        sys.setprofile(None)
        torch.nn.Module.__call__, torch.Tensor.backward = forward, backward


class Noting(ast.NodeTransformer):
    """Passes each call's and operator's value through `__note__`, at no position of the original, and adds a local."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.parse("noted = []").body[0])
        return node

    def _note_call(self, node: Any) -> Any:
        self.generic_visit(node)
        return ast.Call(ast.Name("__note__", ast.Load()), [node], [])

    def visit_Call(self, node: ast.Call) -> Any:
        return self._note_call(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._note_call(node)


def note_value(value: Any) -> Any:
    """Looks at a value as an author who does not know autograd would."""
    if hasattr(value, "reshape"):
        KEPT.append(value.reshape(1, -1) @ value.reshape(-1, 1))
    if not isinstance(value, torch.Tensor):
        return value
    KEPT.append(value)
    value.seen = lambda: None
    if value.is_inference():
        with torch.inference_mode(mode=False):
            return value.clone()
    if value.requires_grad:
        value.retain_grad()
        value.register_hook(lambda gradient: gradient.clone().contiguous() * 1.25)
    if value.grad_fn is not None:
        value.grad_fn.metadata["seen"] = True
        value.grad_fn.register_prehook(KEPT.extend)
    return value if value.is_leaf else value.add_(0)


KEPT: list[Any] = []


@contextlib.contextmanager
def rewritten() -> Iterator[None]:
    """What `Noting` needs, and things left behind in the process."""
    builtins.__dict__["__note__"] = note_value
    os.environ["BACKPROBE_LEFT"] = "1"
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    torch.manual_seed(1)
    torch.set_grad_enabled(mode=True)
    with torch.autocast("cpu", enabled=False):
        yield


def rewritten_code(data: bytes, path: str) -> Any:
    """The program's code with `Noting` in it."""
    return compile(ast.unparse(ast.fix_missing_locations(Noting().visit(ast.parse(data)))), path, "exec")


CLUMSY: dict[str, Any] = {
    "function-mode": FunctionMode, "dispatch-mode": DispatchMode, "hooked": hooked, "rewritten": rewritten,
}  # fmt: skip
