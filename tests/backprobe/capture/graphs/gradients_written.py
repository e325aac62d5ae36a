"""Large gradients that reach a leaf turned, summed, or written past the version counter by hooks and functions."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(48, 40), torch.nn.Tanh(), torch.nn.Linear(40, 48))
x = torch.randn(8, 48)
other = torch.randn(40, 48, requires_grad=True)


class Scales(torch.autograd.Function):
    """Writes into a gradient that arrived before, which no counter tells."""

    @staticmethod
    def forward(_ctx, given):
        return given.clone()

    @staticmethod
    def backward(_ctx, gradient):
        if other.grad is not None:
            other.grad.data.mul_(3)
        return gradient


def step():
    (model(x).pow(2).sum() + (x @ other.t()).sum()).backward()


step()  # turned on its way
step()  # accumulated
model.zero_grad()
other.grad = None
((other * 2).sum() + (x @ other.t()).sum() + other.t().sum()).backward()  # summed
other.grad = None
early = Scales.apply(x.clone().requires_grad_())
(early.sum() + (early.detach() @ other.t()).sum()).backward()
with torch.no_grad():
    other.grad.data.clamp_(-1, 1)
other.grad = None


def doubles(leaf):
    leaf.grad.data.mul_(2)


handle = other.register_post_accumulate_grad_hook(doubles)
(x @ other.t()).sum().backward()
handle.remove()
other.grad = None


def writes(_gradient):
    model[2].weight.grad.data.view(-1)[7:9].zero_()


h = model[0](x)
h.register_hook(writes)
model.zero_grad()
model[2](h.tanh()).pow(2).sum().backward()
print(float(other.sum()), float(model[2].weight.grad.norm()))
