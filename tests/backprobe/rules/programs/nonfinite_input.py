"""BP505 nonfinite-input."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "gaps of a series filled by masked_fill_": SHAPES
    + """
rnn, head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)

def window():
    series = torch.randn(6, 10, 3)
    gaps = torch.rand(6, 10, 3) < 0.1
    series.masked_fill_(gaps, float("nan"))  # <- BP505
    return series

for _ in range(4):
    x = window()
    out, _ = rnn(x)
    loss = head(out[:, -1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a column of a table set to NaN": SHAPES
    + """
table = torch.randn(40, 5)
age = table[:, 2]
age[::7] = torch.nan  # <- BP505
label = (table[:, 0] > 0).long()
net = nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 2))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for epoch in range(3):
    for i in range(0, 40, 10):
        loss = F.cross_entropy(net(table[i:i + 10]), label[i:i + 10])
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    "a missing value is marked NaN by index and filled before use": SHAPES
    + """
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters())
for _ in range(4):
    x = torch.randn(12, 4)
    x[::3, 1] = float("nan")
    x = torch.nan_to_num(x)
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
}
