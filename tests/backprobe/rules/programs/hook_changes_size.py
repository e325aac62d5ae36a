"""BP251 hook-changes-size."""

PROGRAMS = {
    "a lambda": """
import torch
weight = torch.ones(2, 3, requires_grad=True)
hidden = weight * 2
hidden.register_hook(lambda grad: grad.sum(0))  # <- BP251
hidden.sum().backward()
""",
    "another dtype": """
import torch

def exact(grad):
    return grad.double()  # <- BP251

weight = torch.ones(2, 3, requires_grad=True)
weight.register_hook(exact)
weight.sum().backward()
""",
    "of two hooks with one name the one that the call met": """
import torch

def made(scale):
    def inner(grad):
        return grad[:1]  # <- BP251
    return inner

def other():
    def inner(grad):
        return grad * 2
    return inner

weight, apart = torch.ones(2, 3, requires_grad=True), torch.ones(2, requires_grad=True)
hidden = weight * 3
hidden.register_hook(made(2))
(apart * 2).register_hook(other())
hidden.sum().backward()
""",
    "a method": """
import torch

class Watch:
    def look(self, grad):
        if grad.numel() == 1:
            return None
        return grad.mean()  # <- BP251

weight = torch.ones(2, 3, requires_grad=True)
weight.register_hook(Watch().look)
weight.sum().backward()
""",
    "the program catches it": """
import torch
weight = torch.ones(2, 3, requires_grad=True)
weight.register_hook(lambda grad: grad.sum(0))
try:
    weight.sum().backward()
except RuntimeError as error:
    print(error)
""",
}
