"""BP507 vanishing-gradient."""

RECURRENCE = """
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(2, 16)
nn.init.orthogonal_(cell.weight_hh, gain={gain})
first, head = nn.Linear(5, 16), nn.Linear(16, 3)
optimizer = torch.optim.SGD([*first.parameters(), *cell.parameters(), *head.parameters()], lr=0.05)
for _ in range(4):
    start = torch.randn(8, 5)
    h = torch.tanh(first(start))
    for frame in torch.randn(40, 8, 2):
        h = cell(frame, h){mark}
    loss = nn.functional.cross_entropy(head(h), (start[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "a recurrence that forgets, and one activation before it": RECURRENCE.format(gain=0.5, mark="  # <- BP507"),
    "a recurrence that keeps": RECURRENCE.format(gain=1.0, mark=""),
}
