import torch
from torch import nn

torch.manual_seed(17)
cell, head = nn.GRUCell(2, 12), nn.Linear(12, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)


def unroll(xs, h=None):
    outputs = []
    h = torch.zeros(xs.size(1), 12) if h is None else h
    for x in xs:
        h = cell(x, h)
        outputs.append(head(h))
    h = h.detach()
    return outputs


for it in range(15):
    xs = torch.randn(6, 16, 2)
    target = xs[0, :, :1]
    loss = nn.functional.mse_loss(unroll(xs)[-1], target)
    opt.zero_grad()
    loss.backward()
    opt.step()
probe = torch.randn(6, 1, 2, requires_grad=True)
print(loss.item())
