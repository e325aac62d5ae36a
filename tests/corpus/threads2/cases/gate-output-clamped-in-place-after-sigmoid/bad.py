import torch
from torch import nn


class GatedCell(nn.Module):
    def __init__(self, dim, floor=0.05):
        super().__init__()
        self.inp, self.rec = nn.Linear(dim, 2 * dim), nn.Linear(dim, 2 * dim)
        self.floor = floor

    def forward(self, x, h):
        gate, cand = (self.inp(x) + self.rec(h)).chunk(2, -1)
        gate = gate.sigmoid()
        cand = torch.tanh(cand)
        gate.clamp_(self.floor, 1 - self.floor)
        return gate * h + (1 - gate) * cand


def rollout(cell, head, seq):
    h = seq.new_zeros(seq.shape[1], seq.shape[2])
    outs = []
    for x in seq:
        h = cell(x, h)
        outs.append(head(h))
    return torch.stack(outs)


torch.manual_seed(36)
cell, head = GatedCell(6), nn.Linear(6, 6)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
for it in range(3):
    seq = torch.randn(7, 4, 6).cumsum(0)
    loss = nn.functional.smooth_l1_loss(rollout(cell, head, seq[:-1]), seq[1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
