# /// case
# title = "running += loss keeps every iteration's graph alive"
# category = "retention-leak"
# kind = "graph-retained-accumulator"
# severity = "warning"
# names = ["running"]
# difficulty = "medium"
# symptom = "silent: memory grows; the running total requires grad and its graph spans all iterations"
# symptom_check = 'getattr(running, "grad_fn", None) is not None'
# cause = "adding a tracked tensor to an outliving variable keeps its history"
# fix = "running += loss.item()"
# evidence = [
#     { url = "https://github.com/BatsResearch/labelmodels/issues/4" },
#     { url = "https://github.com/google/brax/pull/152" },
#     { url = "https://github.com/MultimediaTechLab/YOLO/pull/83" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
reg = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(reg.parameters(), lr=0.01)
batches = [(torch.randn(12, 8), torch.randn(12, 1)) for _ in range(30)]

running = 0.0
for xb, yb in batches:
    opt.zero_grad()
    loss = nn.functional.mse_loss(reg(xb), yb)
    loss.backward()
    opt.step()
    running += loss  #- here
#+     running += loss.item()
print("mean loss", running / len(batches))
