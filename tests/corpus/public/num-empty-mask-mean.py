# /// case
# title = "Masked mean over a sample whose mask is empty: 0/0"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["denom", "seq_loss"]
# difficulty = "medium"
# symptom = "silent: loss NaN, all parameters NaN after one step"
# symptom_check = "not torch.isfinite(scorer.weight).all()"
# cause = "sum of the mask is 0 for one row"
# fix = "clamp the denominator (or drop empty rows)"
# evidence = [
#     { url = "https://github.com/Zhen-Dong/Magic-Me/issues/14" },
#     { url = "https://github.com/lhwcv/mlsd_pytorch/issues/9" },
#     { url = "https://github.com/LAION-AI/Open-Assistant/pull/2001" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
scorer = nn.Linear(6, 4)
opt = torch.optim.Adam(scorer.parameters(), lr=1e-3)
lengths = torch.tensor([5, 3, 0, 4])
mask = (torch.arange(5)[None] < lengths[:, None]).float()
for step in range(2):
    tok = torch.randn(4, 5, 6)
    gold = torch.randint(0, 4, (4, 5))
    ce = F.cross_entropy(scorer(tok).flatten(0, 1), gold.flatten(), reduction="none").view(4, 5)
    denom = mask.sum(1)  #- also
#+     denom = mask.sum(1).clamp_min(1.0)
    seq_loss = (ce * mask).sum(1) / denom  #! here
    opt.zero_grad()
    seq_loss.mean().backward()
    opt.step()
print(seq_loss)
