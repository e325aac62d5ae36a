"""A wrapper class answers for its sizes, and cannot yet while torch makes the object."""

import torch


class Answers(torch.Tensor):
    asked = 0

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(
            cls, inside.size(), inside.stride(), None, None, inside.dtype, inside.layout, inside.device, False,
            inside.requires_grad, "sizes",
        )  # fmt: skip

    def __init__(self, inside):
        self.inside = inside

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.sym_size.default:
            Answers.asked += 1
        inside = torch.utils._pytree.tree_map_only(cls, lambda one: one.inside, args)
        out = func(*inside, **(kwargs or {}))
        return torch.utils._pytree.tree_map_only(torch.Tensor, cls, out)


x = torch.randn(4, 3, requires_grad=True)
w = Answers(x)
y = (w * w.sum()).view(-1).view(4, 3).exp()
y.sum().backward()
print(type(y).__name__, tuple(y.shape), w.grad is not None, x.grad, Answers.asked)
