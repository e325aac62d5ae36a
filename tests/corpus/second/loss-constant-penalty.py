# /// case
# title = "L1 penalty computed from p.data: a constant in the loss"
# category = "loss-wiring"
# kind = "loss-term-without-gradient"
# severity = "warning"
# names = ["penalty"]
# difficulty = "hard"
# symptom = "silent: the penalty has no gradient"
# symptom_check = "not penalty.requires_grad"
# cause = ".data cuts the history, so the term only shifts the loss value"
# fix = "p.abs().sum()"
# evidence = [
#     { url = "https://github.com/bioFAM/scDORI/issues/19" },
#     { url = "https://github.com/oclivegriffin/crosscode/pull/3" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(53)
sparse = nn.Sequential(nn.Linear(30, 30), nn.Tanh(), nn.Linear(30, 1))
opt = torch.optim.Adam(sparse.parameters(), lr=1e-3)
genes = torch.randn(64, 30)
trait = genes[:, :1] * 2
for epoch in range(8):
    fit = (sparse(genes) - trait).pow(2).mean()
    penalty = sum(p.data.abs().sum() for p in sparse.parameters())  #- here
#+     penalty = sum(p.abs().sum() for p in sparse.parameters())
    objective = fit + 0.05 * penalty  #! also
    opt.zero_grad()
    objective.backward()
    opt.step()
print(fit.item(), penalty.item())
