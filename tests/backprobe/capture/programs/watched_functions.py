"""The functions of torch that are watched behave as ever: identity, source, tracebacks, hooks, modes, lifetimes."""

import contextlib
import copy
import gc
import inspect
import pickle
import traceback
import warnings
import weakref

import torch
from torch.utils.hooks import RemovableHandle

torch.manual_seed(0)
warnings.simplefilter("ignore")
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, 1)
scaler = torch.amp.GradScaler("cpu")
x = torch.ones(3, 2)

functions = (
    torch.no_grad.__enter__, torch.set_grad_enabled.__init__, torch.nn.Module.train, torch.Tensor.register_hook,
    torch.nn.Module.register_forward_hook, torch.nn.utils.clip_grad_norm_, torch.optim.lr_scheduler.StepLR.step,
    torch.amp.GradScaler.step, contextlib.suppress.__exit__, RemovableHandle.remove, torch.optim.Optimizer.zero_grad,
)  # fmt: skip
for function in functions:
    inner = inspect.unwrap(function)
    print(
        function.__qualname__,
        inspect.signature(function),
        len(inspect.getsource(function)),
        inner.__code__.co_firstlineno,
    )
    print(inner.__code__.co_qualname, inner.__code__.co_argcount, inner.__code__.co_freevars, inner.__doc__ is None)

first = RemovableHandle.next_id
handle = model[0].weight.register_hook(lambda g: g * 2)
other = model.register_forward_hook(lambda *_: None)
print(handle.id - first, other.id - first, len(model[0].weight._backward_hooks), len(model._forward_hooks))
print(type(pickle.loads(pickle.dumps(torch.nn.Linear(1, 1)))).__name__, len(copy.deepcopy(model)._forward_hooks))

for step in range(3):
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).float().pow(2).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    norm = torch.nn.utils.clip_grad_norm_((p for p in model.parameters()), 1.0)
    scaler.step(opt)
    scaler.update()
    schedule.step()
    print(step, loss.item(), norm.item(), schedule.get_last_lr(), scaler.get_scale())
handle.remove()
print(len(model[0].weight._backward_hooks), torch.rand(1).item())


def failing():
    for attempt in (
        lambda: torch.ones(1).register_hook(print),
        lambda: torch.nn.utils.clip_grad_norm_([model[0].weight], 1.0, norm_type="x"),
        lambda: scaler.unscale_(None),
        lambda: model.train("yes"),
        lambda: torch.use_deterministic_algorithms(mode=1, warn_only=2, third=3),
        lambda: opt.add_param_group({"params": "none"}),
    ):
        try:
            attempt()
        except Exception:
            print(traceback.format_exc())


failing()


@torch.no_grad()
def inner(a):
    return torch.is_grad_enabled(), (a * 2).requires_grad


@torch.jit.script
def scripted(a):
    with torch.no_grad():
        b = a * 2
    return b + 0


w = torch.ones(2, requires_grad=True)
print(inner(w), torch.is_grad_enabled(), scripted(w).requires_grad)
with torch.inference_mode():
    print((w * 2).is_inference())
print(torch.set_grad_enabled(True), repr(torch.no_grad()).split(" at ")[0])
model.eval()
print([part.training for part in model.modules()], model.train() is model)


class Marked(torch.Tensor):
    pass


kept = torch.ones(2).as_subclass(Marked).requires_grad_()
alive = weakref.ref(kept)
token = kept.register_hook(print)
with contextlib.suppress(RuntimeError):
    kept.mul_(2)
del kept, token
gc.collect()
print(alive() is None, gc.garbage)

hidden = [(w * step).exp().sum() for step in range(3)]
refs = [weakref.ref(one) for one in hidden]
losses = []
for step in range(6):
    value = (w * step).exp().sum()
    losses.append(value)
    value.backward(retain_graph=True)
gone = [weakref.ref(one) for one in losses]
del value, hidden, losses
print([ref() is None for ref in refs], [ref() is None for ref in gone])
