"""The programs that are captured on the device. In their text DEVICE stands for it, and `CUDA(a | b)` for a or b.

On CUDA the first of the two runs, on the stand-in the second: what comes nearest on a CPU.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Final

from tests.gpu.place import Place

_CHOICE: Final = re.compile(r"CUDA\((.*?) \| (.*?)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program for both places.

    Attributes:
        instead: What the stand-in runs where CUDA has something else; empty: the same.
    """

    text: str
    instead: str = ""

    def text_for(self, place: Place) -> str:
        """Its text for a place."""
        chosen = _CHOICE.sub(lambda found: found[1 if place.is_cuda else 2], textwrap.dedent(self.text))
        compiler = "inductor" if place.is_cuda else "aot_eager"
        return chosen.replace("DEVICE", repr(place.device)).replace("COMPILER", repr(compiler))


PROGRAMS: Final = {
    "flags": Program(
        text="""
        import torch
        w = torch.ones(3, device=DEVICE, requires_grad=True)
        b = w * 2
        b.retain_grad()
        c = b.detach()
        b.sum().backward()
        print(w.grad.tolist(), b.grad.tolist())
        """
    ),
    "reasons": Program(
        text="""
        import torch
        w = torch.ones(3, requires_grad=True)
        CUDA(x = w.to("cuda") | x = w.to(torch.float64))
        (x * x).sum().backward()
        seen = x.grad
        print(seen, w.grad.tolist())
        """,
        instead="a copy to another dtype, not to another device",
    ),
    "in-place": Program(
        text="""
        import torch
        w = torch.ones(4, device=DEVICE, requires_grad=True)
        with torch.no_grad():
            w.add_(1)
            w.mul_(2)
        y = w.exp()
        y.add_(1)
        try:
            y.sum().backward()
        except RuntimeError:
            print("raised")
        """
    ),
    "retention in bytes": Program(
        text="""
        import torch
        w = torch.zeros(1024, device=DEVICE, requires_grad=True)
        y = w.exp()
        loss = y.sum()
        loss.backward(retain_graph=True)
        loss.backward()
        print(w.grad.sum().item())
        """
    ),
    "streams": Program(
        text="""
        import torch
        w = torch.ones(64, device=DEVICE, requires_grad=True)
        CUDA(side = torch.cuda.Stream() | side = None)
        CUDA(side.wait_stream(torch.cuda.current_stream()) | pass)
        with torch.cuda.stream(side):
            h = w * 1
            loss = h.sum()
            loss.backward()
        CUDA(torch.cuda.current_stream().wait_stream(side) | pass)
        print(w.grad.sum().item())
        """,
        instead="torch.cuda.stream(None), which does nothing",
    ),
    ".to": Program(
        text="""
        import torch
        w = torch.ones(5, requires_grad=True)
        there = w.to(DEVICE)
        CUDA(back = (there * 3).to("cpu") | back = (there * 3).to("cpu", copy=True))
        back.sum().backward()
        print(w.grad.tolist())
        """,
        instead="copies on the CPU",
    ),
    "pinned memory, non_blocking": Program(
        text="""
        import torch
        w = torch.ones(64, device=DEVICE, requires_grad=True)
        CUDA(x = torch.ones(64).pin_memory() | x = torch.ones(64))
        CUDA(x = x.to("cuda", non_blocking=True) | x = x.to("cpu", non_blocking=True, copy=True))
        (w * x).sum().backward()
        print(w.grad.sum().item())
        """,
        instead="memory that is not pinned, copied with non_blocking",
    ),
    "autocast": Program(
        text="""
        import torch
        layer = torch.nn.Linear(8, 8).to(DEVICE)
        x = torch.ones(4, 8, device=DEVICE)
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            y = layer(x)
            loss = y.float().pow(2).mean()
        loss.backward()
        print(y.dtype, layer.weight.grad.dtype)
        """
    ),
    "GradScaler that overflows": Program(
        text="""
        import torch
        w = torch.nn.Parameter(torch.ones(100, device=DEVICE))
        optimizer = torch.optim.SGD([w], lr=1e-3)
        scaler = torch.amp.GradScaler(DEVICE, init_scale=65536.0)
        for factor in (1e36, 1.0):
            optimizer.zero_grad()
            loss = (w * factor).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        print(scaler.get_scale())
        """
    ),
    "CUDA graphs": Program(
        text="""
        import torch
        x = torch.ones(3, device=DEVICE)
        def double(t):
            return t * 2
        CUDA(side = torch.cuda.Stream() | side = None)
        CUDA(side.wait_stream(torch.cuda.current_stream()) | pass)
        with torch.cuda.stream(side):
            y = double(x)
        CUDA(torch.cuda.current_stream().wait_stream(side) | pass)
        CUDA(graph = torch.cuda.CUDAGraph() | graph = None)
        CUDA(recording = torch.cuda.graph(graph) | recording = torch.cuda.stream(None))
        with recording:
            y = double(x)
        x.fill_(3)
        CUDA(graph.replay() | y.copy_(double(x)))
        print(y.tolist())
        """,
        instead="the same function called again; a CPU has no graphs to record",
    ),
    "torch.compile": Program(
        text="""
        import torch
        w = torch.ones(8, device=DEVICE, requires_grad=True)
        def f(t):
            return (t * t).sin().sum()
        compiled = torch.compile(f, backend=COMPILER, fullgraph=True)
        loss = compiled(w)
        loss.backward()
        print([round(number, 5) for number in w.grad.tolist()])
        """,
        instead="backend aot_eager, which compiles no kernel",
    ),
}
"""By what each is about."""
