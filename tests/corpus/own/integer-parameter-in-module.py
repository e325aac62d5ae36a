# /// case
# category = "leaf"
# kind = "requires-grad-on-integer"
# severity = "error"
# names = ["steps"]
# ///
#-
import torch
from torch import nn


class Schedule(nn.Module):
    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = nn.Parameter(torch.arange(steps))  #- here
#+         self.steps = nn.Parameter(torch.arange(steps, dtype=torch.float32))

    def forward(self, x):
        return x * self.steps.cumsum(0)


layer = Schedule(5)
print(layer(torch.ones(5)).sum())
