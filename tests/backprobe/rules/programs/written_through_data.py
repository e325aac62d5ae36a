"""Leaves that are updated through `.data` (BP210), and clears before the step that a log does not excuse (BP212)."""

PROGRAMS = {
    "data minus equal no clear": """
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
x, y = torch.randn(16, 4), torch.randn(16)
for step in range(5):
    loss = (x @ w - y).pow(2).mean()
    loss.backward()  # <- BP210
    w.data -= 0.05 * w.grad
""",
    "pgd data assign no clear": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
x, y = torch.rand(8, 6), torch.randint(0, 3, (8,))
delta = torch.zeros_like(x, requires_grad=True)
for i in range(5):
    loss = nn.functional.cross_entropy(net(x + delta), y)
    loss.backward()  # <- BP210
    delta.data = (delta.data + 0.02 * delta.grad.sign()).clamp(-0.1, 0.1)
print(delta.abs().max())
""",
    "good pgd data assign clear": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
x, y = torch.rand(8, 6), torch.randint(0, 3, (8,))
delta = torch.zeros_like(x, requires_grad=True)
for i in range(5):
    loss = nn.functional.cross_entropy(net(x + delta), y)
    loss.backward()
    delta.data = (delta.data + 0.02 * delta.grad.sign()).clamp(-0.1, 0.1)
    delta.grad.zero_()
print(delta.abs().max())
""",
    "wd cleared between by helper with norms logged": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.01)
for step in range(4):
    net(torch.randn(8, 4)).pow(2).mean().backward()
    total = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
    print(total.item())
    opt.zero_grad()  # <- BP212
    opt.step()
""",
    "good rounded for a pass and put back under accumulation": """
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
opt = torch.optim.SGD([w], 0.05)
x, y = torch.randn(16, 4), torch.randn(16)
for step in range(3):
    opt.zero_grad()
    for _ in range(2):
        full = w.detach().clone()
        w.data.copy_((full * 8).round() / 8)
        ((x @ w - y).pow(2).mean() / 2).backward()
        print(w.grad.norm())
        w.data.copy_(full)
    opt.step()
""",
    "momentum by hand through data no clear": """
import torch
torch.manual_seed(0)
w = torch.randn(4, requires_grad=True)
speed = torch.zeros(4)
x, y = torch.randn(16, 4), torch.randn(16)
def move(tensor, by):
    tensor.data.sub_(by)
for step in range(5):
    loss = (x @ w - y).pow(2).mean()
    loss.backward()  # <- BP210
    speed.mul_(0.5).add_(w.grad)
    move(w, 0.05 * speed)
""",
}
