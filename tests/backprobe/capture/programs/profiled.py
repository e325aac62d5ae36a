import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
x = torch.ones(2, 4)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
    out = model(x)
    loss = out.sum()
    loss.backward()
print(sorted((e.key, e.count) for e in prof.key_averages() if e.key.startswith("aten::")))
with FlopCounterMode(display=False) as flops:
    out = model(x)
    out.sum().backward()
print(flops.get_total_flops())
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
torch.manual_seed(0)
with torch.no_grad():
    print(layer(torch.ones(1, 3, 8)).shape)
traced = torch.jit.trace(model, x)
print(str(traced.graph).count("aten::"))


def by_hand(t):
    u = t * 2
    if t.numel() > 1:
        u = u + 1
    return u.sum()


print(torch.jit.trace(by_hand, x).graph)
print(torch.fx.symbolic_trace(model).graph)


@torch.jit.script
def scripted(a: torch.Tensor) -> torch.Tensor:
    b = a * 2
    return b + 1


print(scripted(x).sum().item())
print(torch.func.grad(lambda t: (t * t).sum())(torch.ones(3)), torch.vmap(lambda t: t * 2)(torch.ones(2, 2)).tolist())
print(torch.autograd.functional.jacobian(lambda t: t * t, torch.ones(2)).tolist())
from torch.utils.checkpoint import checkpoint

count = []


def block(t):
    count.append(1)
    h = t.sin()
    return h.cos()


w = torch.ones(3, requires_grad=True)
checkpoint(block, w, use_reentrant=False).sum().backward()
checkpoint(block, w, use_reentrant=True).sum().backward()
print(len(count), w.grad.tolist())
s = torch.eye(3).to_sparse().requires_grad_()
(s @ torch.ones(3, 1)).sum().backward()
print(s.grad is not None)
n = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
m = n * 2
q = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
meta = torch.ones(3, device="meta", requires_grad=True)
(meta * 2).sum().backward()
with torch.inference_mode():
    inf = torch.ones(2) * 2
    inf2 = inf + 1
conj = torch.ones(2, dtype=torch.complex64, requires_grad=True).conj()
conj.abs().sum().backward()
half = torch.ones(2, dtype=torch.float16)
bf = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
(bf * 2).sum().backward()
f8 = torch.ones(2).to(torch.float8_e4m3fn)
empty = torch.ones(0, 3)
print(bf.grad, conj.requires_grad, empty.sum())
