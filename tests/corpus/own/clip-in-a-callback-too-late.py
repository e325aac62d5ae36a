# /// case
# category = "wiring"
# kind = "clip-after-step"
# severity = "warning"
# names = ["clip_grad_norm_", "step", "clip"]
# ///
#-
import torch
from torch import nn


class Clip:
    def __init__(self, limit):
        self.limit = limit

    def after_step(self, model):
        nn.utils.clip_grad_norm_(model.parameters(), self.limit)  #! here


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
callbacks = [Clip(0.5)]
for x in torch.randn(5, 16, 4):
    opt.zero_grad()
    (model(x) - 3).pow(2).mean().backward()
    opt.step()  #- also
    for callback in callbacks:
        callback.after_step(model)  #! also
#+     opt.step()
