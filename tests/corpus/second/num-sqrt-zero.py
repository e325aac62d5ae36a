# /// case
# title = "Pairwise distance: sqrt at 0 on the diagonal"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "warning"
# names = ["dist"]
# difficulty = "medium"
# symptom = "silent: finite loss, NaN gradients"
# symptom_check = "bool(torch.isnan(emb.weight.grad).any()) and bool(torch.isfinite(spread))"
# cause = "d sqrt/dx = inf at 0, times 0 is NaN"
# fix = "sqrt(sq + eps) / mask before the sqrt"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/2421" },
#     { url = "https://github.com/richzhang/PerceptualSimilarity/issues/69" },
#     { url = "https://github.com/ronghuaiyang/arcface-pytorch/issues/91" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
emb = nn.Linear(7, 3)
batch = torch.randn(10, 7)
z = emb(batch)
sq = (z[:, None] - z[None]).pow(2).sum(-1)
dist = torch.sqrt(sq)  #- here
#+ dist = torch.sqrt(sq + 1e-8)
spread = dist.mean()
spread.backward()
print(spread.item(), emb.weight.grad)
