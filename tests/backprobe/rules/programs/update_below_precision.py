"""BP511 update-below-precision."""

PROGRAMS = {
    "a model moved to bfloat16 with a small rate": """
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(6))
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        return self.out(x * self.gain)

head = Head()
head = head.to(device="cpu", dtype=torch.bfloat16)  # <- BP511
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-5, weight_decay=0.0)
x = torch.randn(32, 6).bfloat16()
for turn in range(20):
    loss = (head(x).float() - x.float().sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "layers that are built in float16": """
import torch
from torch import nn

def train(net, x, y, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.5)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=False)
        nn.functional.mse_loss(net(x).float(), y).backward()
        optimizer.step()

torch.manual_seed(0)
net = nn.Linear(5, 2, dtype=torch.float16)  # <- BP511
train(net, torch.randn(16, 5).half(), torch.randn(16, 2) + 3, 15)
""",
    "only the norms are too coarse": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 1))
net.bfloat16()  # <- BP511
optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
x = torch.randn(32, 8).bfloat16()
for turn in range(16):
    loss = (net(x).float() - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "large steps in bfloat16": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).bfloat16()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(32, 8).bfloat16()
for turn in range(14):
    loss = (net(x).float() - x.float().sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "weights in float32 under autocast": """
import torch
from torch import nn

net = nn.Linear(8, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-5)
x = torch.randn(32, 8)
for turn in range(14):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    loss = (out.float() - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a rate that rises from nothing": """
import torch
from torch import nn

net = nn.Linear(8, 1).bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=0.3)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1e-7 if step < 12 else 1.0)
x = torch.randn(32, 8).bfloat16()
for turn in range(16):
    loss = (net(x).float() - x.float().sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm.step()
""",
    "a frozen part that has no gradient": """
import torch
from torch import nn

body, head = nn.Linear(8, 8).bfloat16(), nn.Linear(8, 1)
for p in body.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-2)
x = torch.randn(32, 8)
for turn in range(14):
    loss = (head(body(x.bfloat16()).float()) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a gradient that is nothing but rounding": """
import torch
from torch import nn

torch.manual_seed(0)
q, k, v = (nn.Linear(8, 8).bfloat16() for _ in range(3))
optimizer = torch.optim.SGD([*q.parameters(), *k.parameters(), *v.parameters()], lr=0.5)
x = torch.randn(4, 6, 8).bfloat16()
for turn in range(14):
    weights = (q(x) @ k(x).transpose(1, 2)).float().softmax(-1)
    loss = ((weights @ v(x).float()) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
