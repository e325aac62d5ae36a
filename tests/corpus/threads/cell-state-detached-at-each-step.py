# /// case
# title = "The state is detached at every time step, so nothing is learned over time"
# category = "uncovered"
# kind = "graph-break-detach"
# kinds_also_ok = ["truncated-at-each-cell"]
# severity = "warning"
# names = ["h", "detach"]
# symptom = "the loss at the end has no gradient for the first input"
# symptom_check = "torch.autograd.grad(unroll(probe)[-1].sum(), probe, allow_unused=True)[0][0].abs().max() == 0"
# cause = "detach stands in the loop over time"
# fix = "detach between chunks"
# evidence = [
#     { url = "https://github.com/OpenNMT/OpenNMT-py/issues/1148", title = "Query regarding detach behavior in truncated bptt" },
#     { url = "https://github.com/dpressel/dliss-tutorial/issues/1", title = "Detach the hidden states" },
# ]
# ///
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
        h = h.detach()  #- here
#+     h = h.detach()
    return outputs


for it in range(15):
    xs = torch.randn(6, 16, 2)
    target = xs[0, :, :1]
    loss = nn.functional.mse_loss(unroll(xs)[-1], target)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
probe = torch.randn(6, 1, 2, requires_grad=True)
print(loss.item())
