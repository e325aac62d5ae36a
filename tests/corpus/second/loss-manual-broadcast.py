# /// case
# title = "Hand-written squared error between (N, 1) and (N,): silent (N, N) broadcast"
# category = "loss-wiring"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["residual"]
# difficulty = "hard"
# symptom = "silent: no warning, the model learns the mean"
# symptom_check = "residual.shape == (50, 50)"
# cause = "broadcasting rules"
# fix = "align the shapes"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/16045" },
#     { url = "https://github.com/andrewgcodes/xlstm/issues/4" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(28)
glucose = nn.Linear(7, 1)
opt = torch.optim.SGD(glucose.parameters(), lr=0.05)
vitals = torch.randn(50, 7)
level = vitals[:, 0] - 2 * vitals[:, 3]
for _ in range(20):
    residual = glucose(vitals) - level  #- here
#+     residual = glucose(vitals).view(-1) - level
    loss = (residual**2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
