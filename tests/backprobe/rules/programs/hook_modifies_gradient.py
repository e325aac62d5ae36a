"""BP250 hook-modifies-gradient."""

_HOOK = """
import torch

seen, state = [], {{}}

def hook(grad):
    {body}

weight = torch.ones(3, requires_grad=True)
weight.register_hook(hook)
(weight * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
"""


def _hook(*lines: str) -> str:
    return _HOOK.format(body="\n    ".join(lines))


PROGRAMS = {
    "an expression is returned": _hook("seen.append(grad.norm().item())", "return grad.abs() * 2  # <- BP250"),
    "the size is printed": _hook("size = grad.norm()", "print(size)", "return grad / size  # <- BP250"),
    "it is kept under a key": _hook('state["last"] = grad.detach()', "return grad * 2  # <- BP250"),
    "the parameter's name holds the other one": _hook(
        "grad = grad * 2", "seen.append(grad)", "return grad  # <- BP250"
    ),
    "the other of two returns": _hook(
        "seen.append(grad.norm())", "if grad.numel() > 3:", "    return grad", "return grad.sign() * 2  # <- BP250"
    ),
    "a copy with the same values": _hook("seen.append(grad.norm())", "return grad.clone()"),
    "a copy with the same values has a name": _hook("seen.append(grad.norm())", "out = grad.clone()", "return out"),
    "bounds that nothing reaches": _hook("seen.append(grad.norm())", "return grad.clamp(-10, 10)"),
    "a local list is filled": _hook("parts = []", "parts.append(grad * 2)", "return parts[0] * 1.5"),
    "a text is printed": _hook('print("called")', "return grad * 2"),
    "a number is kept": _hook('state["factor"] = 2', "return grad * 2"),
    "a part of a local is set from the gradient": _hook("out = grad * 2", "out[0] = grad[1]", "return out"),
    "it is changed in place and not returned": _hook("grad.mul_(1)", "return grad * 2"),
    "it returns nothing": _hook("seen.append(grad)"),
    "it returns None": _hook("seen.append(grad)", "return None"),
    "a method keeps it in its object": """
import torch

class Watch:
    def __init__(self):
        self.last = None

    def look(self, grad):
        self.last = grad.norm()
        return grad / self.last  # <- BP250

watch = Watch()
weight = torch.full((3,), 2.0, requires_grad=True)
weight.register_hook(watch.look)
weight.square().sum().backward()
""",
    "a lambda is not seen": """
import torch
seen = {}
weight = torch.full((3,), 2.0, requires_grad=True)
weight.register_hook(lambda grad: seen.setdefault("w", grad.abs()))
(-weight.square()).sum().backward()
""",
    "a hook on a module gets tuples": """
import torch
from torch import nn
seen = []

def look(module, grad_in, grad_out):
    seen.append(grad_out)

layer = nn.Linear(3, 1)
layer.register_full_backward_hook(look)
layer(torch.ones(2, 3)).sum().backward()
""",
}
