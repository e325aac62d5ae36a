import traceback

import torch
from torch import nn


def attempt(function):
    try:
        function()
    except Exception:
        traceback.print_exc()


def matmul():
    a = torch.ones(2, 3)
    b = (a + 1).relu() @ torch.ones(2, 3)
    return b


def in_backward():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def twice():
    x = torch.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def linear():
    nn.Linear(3, 2)(torch.ones(1, 4))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x):
        h = self.layers(x)
        return h.view(-1, 7)


def module():
    Net()(torch.ones(2, 3))


def nonscalar():
    torch.ones(2, requires_grad=True).mul(2).backward()


def no_grad():
    torch.ones(2).sum().backward()


def grads():
    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True))


def chained():
    try:
        {}["missing"]
    except KeyError as error:
        raise RuntimeError("second") from error


def contextual():
    try:
        matmul()
    finally:
        [][1]


def many_lines():
    x = torch.ones(2, requires_grad=True)
    return (
        x.sum()
        + torch.cat(
            [x, torch.ones(2, 2)],
        )
    )


def typed():
    torch.ones(2) + "a"


def hook():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    y.sum().backward()


for function in (
    matmul, in_backward, twice, linear, module, nonscalar, no_grad, grads, chained, contextual, many_lines, typed, hook
):
    attempt(function)
matmul()
