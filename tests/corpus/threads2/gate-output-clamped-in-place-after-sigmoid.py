# /// case
# title = "Sigmoid gates are clamped in place"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["gate", "sigmoid", "clamp_"]
# symptom = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid saved its result"
# fix = "clamp out of place"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/9391", title = "backward pass different behaviors with inplace operation" },
#     { url = "https://github.com/wutong16/DistributionBalancedLoss/issues/20", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.FloatTensor [64, 109]], which is output 0 of SigmoidBackward0, is at version 1; exp" },
# ]
# ///
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
        gate.clamp_(self.floor, 1 - self.floor)  #- here
#+         gate = gate.clamp(self.floor, 1 - self.floor)
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
    loss.backward()  #! also
    opt.step()
print(loss.item())
