# /// case
# title = ".data on a hidden layer cuts the graph"
# category = "graph-break"
# kind = "graph-break-data"
# severity = "warning"
# names = ["h1", "fc1"]
# difficulty = "easy"
# symptom = "silent: the first layer never gets a gradient"
# symptom_check = "fc1.weight.grad is None"
# cause = "Tensor.data returns a tensor without history"
# fix = "drop .data"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/33629" },
#     { url = "https://github.com/Atcold/NYU-DLSP20/pull/863" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(17)
fc1 = nn.Linear(4, 32)
fc2 = nn.Linear(32, 4)
params = list(fc1.parameters()) + list(fc2.parameters())
opt = torch.optim.RMSprop(params, lr=1e-3)


def forward(x):
    h1 = torch.relu(fc1(x))
    h1 = h1.data / h1.data.norm(dim=1, keepdim=True).clamp_min(1e-6)  #- here
#+     h1 = h1 / h1.norm(dim=1, keepdim=True).clamp_min(1e-6)
    return fc2(h1)


for _ in range(12):
    sample = torch.randn(16, 4)
    opt.zero_grad()
    rec = nn.functional.smooth_l1_loss(forward(sample), sample)
    rec.backward()
    opt.step()
print(rec.item())
