"""Both kinds of checkpoint, nested, sequential, with random numbers inside; saved tensors on the CPU and by hooks."""
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

torch.manual_seed(0)
calls = []


def block(t):
    calls.append(torch.is_grad_enabled())
    h = nn.functional.dropout(t.sin(), 0.5)
    return h.cos() * t


for reentrant in (False, True):
    x = torch.randn(4, 4, requires_grad=True)
    y = checkpoint(block, x, use_reentrant=reentrant)
    z = checkpoint(lambda t: checkpoint(block, t, use_reentrant=reentrant) * 2, y, use_reentrant=reentrant)
    z.sum().backward()
    print(reentrant, x.grad.sum().item().hex(), calls, torch.rand(1).item())
    calls.clear()

net = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.2), nn.Tanh()) for _ in range(4)])
for reentrant in (False, True):
    a = torch.randn(2, 4, requires_grad=True)
    checkpoint_sequential(net, 2, a, use_reentrant=reentrant).sum().backward()
    print(a.grad.tolist(), net[0][0].weight.grad.sum().item().hex())


def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE


w = torch.randn(4, 4, requires_grad=True)
out = checkpoint(lambda t: (t @ t).sigmoid() @ t, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))
out.sum().backward()
print(w.grad.sum().item().hex())
b = torch.randn(3, requires_grad=True)
with torch.autograd.graph.save_on_cpu():
    c = (b * b).exp()
    c.sum().backward()
print(b.grad.tolist())
packed = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(tuple(t.shape)) or t.numpy().copy() if not t.requires_grad else t, lambda v: torch.from_numpy(v) if not isinstance(v, torch.Tensor) else v):
    d = (b * 3).sin().mul(b)
    d.sum().backward()
print(packed, b.grad.tolist())
try:
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        checkpoint(block, b, use_reentrant=False)
except RuntimeError as error:
    print(error)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    plain = torch.ones(2)
    checkpoint(block, plain, use_reentrant=True)
print([str(w.message)[:70] for w in seen])
try:
    n = [0]

    def changing(t):
        n[0] += 1
        return t.sin() if n[0] == 1 else t.sin().cos().sum()

    checkpoint(changing, b, use_reentrant=False).sum().backward()
except Exception as error:
    print(type(error).__name__, str(error)[:80])
