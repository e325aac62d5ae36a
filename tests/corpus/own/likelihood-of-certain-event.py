# /// case
# category = "numeric"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn


def bernoulli_log_likelihood(p, hit):
    return hit * torch.log(p) + (1 - hit) * torch.log(1 - p)  #- here
#+     return -nn.functional.binary_cross_entropy_with_logits(p, hit, reduction="none")


torch.manual_seed(0)
scorer = nn.Linear(3, 1)
with torch.no_grad():
    scorer.weight.mul_(40)
opt = torch.optim.SGD(scorer.parameters(), lr=0.01)
rows = torch.randn(64, 3) * 3
hits = (rows.sum(1) > 0).float()
for _ in range(3):
    p = torch.sigmoid(scorer(rows)).squeeze(-1)  #-
#+     p = scorer(rows).squeeze(-1)
    loss = -bernoulli_log_likelihood(p, hits).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
