"""Programs that `on_held_device.py` runs; DEVICE and STEPS stand for what it fills in."""

TRAINING = """
import torch
torch.manual_seed(0)
first, last = torch.nn.Linear(20, 30, device=DEVICE), torch.nn.Linear(30, 2, device=DEVICE)
model = torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.LayerNorm(30, device=DEVICE), last)
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(50, 20).to(DEVICE, copy=True)
target = torch.zeros(50, dtype=torch.long).to(DEVICE, copy=True)
for step in range(STEPS):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
"""
SIZES = """
import torch
torch.manual_seed(0)
first, last = torch.nn.Linear(600, 300, device=DEVICE), torch.nn.Linear(70, 64, device=DEVICE)
model = torch.nn.Sequential(first, torch.nn.Linear(300, 70, device=DEVICE), last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(50, 600).to(DEVICE, copy=True)
scale = torch.ones(100).to(DEVICE, copy=True).requires_grad_()
for step in range(STEPS):
    optimizer.zero_grad()
    scale.grad = None
    loss = model(x).pow(2).mean() + scale.exp().pow(2).sum()
    loss.backward()
    optimizer.step()
"""
STATES = """
import torch
torch.manual_seed(0)
w = torch.randn(6, 6).to("held").requires_grad_()
x = torch.randn(4, 6).to("held")
for round in range(4):
    y = (x @ w).sigmoid() * x
    v = y[1:, ::2]
    part = w.detach().t()
    deep = x.view(2, 1, 2, 1, 3, 2)
    kept = w * 1
    kept.retain_grad()
    few = torch.arange(4).to("held")
    loss = y.sum() + kept.sum() + v.mul(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        x.add_(1)
    w.grad = None
    other = torch.zeros(2, 3).to("held")
    other.data = torch.ones(5).to("held")
    other.data = other.data.view(5, 1)
    with torch.inference_mode():
        still = x * 2
"""
WITHOUT_STEPS = """
import torch
x = torch.tensor([1.0, 2.0, 3.0]).to("held").requires_grad_()
y = x * 2
(g,) = torch.autograd.grad(y.sum(), x)
"""
INFERENCE = """
import torch
x = torch.tensor([1.0, 2.0, 3.0]).to("held")
with torch.inference_mode():
    y = x * 2
    z = torch.cat([y] * 100)
    v = torch.cat([y] * 2_000)
    w = torch.cat([y] * 50_000)
"""
WATCHED = """
import torch
x = torch.ones(100).to("held").requires_grad_()
with WATCH:
    y = x * 2
    y.sum().backward()
"""
FAILING = """
import torch
x = torch.ones(100).to("held").requires_grad_()
y = x * 2
y.sum().backward()
print("done")
"""
