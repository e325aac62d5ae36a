"""Losses, softmax, dropout and distributions behave as ever: signature, source, tracebacks, warnings, subclasses."""

import inspect
import traceback
import warnings

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
x, t = torch.randn(2, 3, requires_grad=True), torch.tensor([0, 1])
normal = torch.distributions.Normal
for function in (F.softmax, F.dropout, F.cross_entropy, F.kl_div, F.sigmoid, normal.rsample, normal.log_prob, checkpoint):
    inner = inspect.unwrap(function)
    print(function.__qualname__, inspect.signature(function), len(inspect.getsource(function)))
    print(inner.__code__.co_qualname, inner.__code__.co_firstlineno, inner.__code__.co_freevars, inner.__defaults__)


def failing():
    for attempt in (
        lambda: F.softmax("a", dim=1),
        lambda: F.dropout(x, p=2.0),
        lambda: nn.CrossEntropyLoss()(x, x.sum()),
        lambda: F.mse_loss(x, torch.ones(5)),
        lambda: F.nll_loss(x, t, reduction="most"),
        lambda: F.cross_entropy(x),
        lambda: normal(x, -1.0).rsample(),
        lambda: torch.distributions.Categorical(logits=x).log_prob(torch.ones(7)),
        lambda: checkpoint(lambda a: a / "no", x, use_reentrant=False),
    ):
        try:
            attempt()
        except Exception:
            print(traceback.format_exc())


failing()
warnings.simplefilter("always")
F.softmax(x)
F.log_softmax(x)
F.mse_loss(x, torch.ones(1, 3))
F.l1_loss(x, x, size_average=False)
nn.Softmax()(x)
checkpoint(torch.sin, x)
F.kl_div(x, x)


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("called", func.__name__, sorted(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


named = torch.ones(2, 3).as_subclass(Named)
print(type(F.softmax(named, dim=1)).__name__, F.dropout(named, 0.5, training=False).shape, nn.Dropout(0.5)(named).shape)


@torch.jit.script
def scripted(a):
    return F.dropout(F.softmax(a, dim=1), 0.5, True).sum() + F.mse_loss(a, a) + F.cross_entropy(a, a)


traced = torch.jit.trace(lambda a: F.softmax(a, dim=1) + F.dropout(a, 0.5, False), (x,))
print(scripted(x).item(), scripted.code, traced.code)
print(torch.vmap(lambda a: F.softmax(a, dim=0) * F.sigmoid(a))(x).sum().item())
print(torch.func.grad(lambda a: F.cross_entropy(a, t))(x).sum().item())
drop = nn.Dropout(0.3)
loss = nn.CrossEntropyLoss()(drop(x), t) + F.smooth_l1_loss(drop(x), x) + F.gumbel_softmax(x, hard=True).sum()
loss = loss + checkpoint(lambda a: F.dropout(a, 0.5).sum(), x, use_reentrant=False) + normal(x, 1.0).rsample().sum()
loss.backward()
print(loss.item(), x.grad.tolist(), torch.rand(3).tolist())
