"""BP508 exploding-gradient."""

UNROLLED = """
import torch
from torch import nn
torch.manual_seed(0)
w = nn.Parameter(torch.randn(16, 16) * {scale}){mark}
layer, out = nn.Linear(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([w, *layer.parameters(), *out.parameters()], lr=1e-12)
for x in torch.randn({calls}, 4, 12, 3):
    h = torch.zeros(4, 16)
    for t in range(12):
        h = h @ w + layer(x[:, t])
    loss = out(h).mean()
    optimizer.zero_grad()
    loss.backward()
    {clip}
    optimizer.step()
"""

PROGRAMS = {
    "a product beside the input's own": UNROLLED.format(scale=1, calls=4, mark="  # <- BP508", clip="pass"),
    "a weight that keeps the norm": UNROLLED.format(scale=0.25, calls=4, mark="", clip="pass"),
    "twice is no pattern": UNROLLED.format(scale=1, calls=2, mark="", clip="pass"),
    "the method of a cell, and values that overflow after one step": """
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.u = nn.Parameter(torch.randn(hidden, inputs) * 0.1)
        self.w = nn.Parameter(torch.empty(hidden, hidden))
        self.start()

    def start(self):
        nn.init.normal_(self.w)  # <- BP508

    def forward(self, x, h):
        return torch.relu(x @ self.u.T + h @ self.w.T)

torch.manual_seed(0)
cell, out = Cell(3, 24), nn.Linear(24, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=1e-3)
for x in torch.randn(3, 20, 8, 3):
    h = x.new_zeros(8, 24)
    for part in x:
        h = cell(part, h)
    optimizer.zero_grad()
    (out(h) - 1).pow(2).mean().backward()
    optimizer.step()
""",
    "layers of a stack in one method, whose weights are not one": """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return x @ self.w

torch.manual_seed(0)
net = nn.Sequential(*[Layer(16) for _ in range(6)], nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-12)
for x in torch.randn(4, 8, 16):
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
""",
    "clipped": UNROLLED.format(scale=1, calls=4, mark="", clip="nn.utils.clip_grad_norm_([w], 1.0)"),
}
