# /// case
# category = "leaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# names = ["offset", "double", "grad"]
# ///
#-
import torch
from torch import nn


class Attack:
    def __init__(self, shape, rate):
        self.offset = torch.zeros(shape, requires_grad=True).double()  #- here
#+         self.offset = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        self.rate = rate

    def step(self, model, x):
        model(x + self.offset).sum().backward()
        with torch.no_grad():
            self.offset += self.rate * self.offset.grad.sign()  #! also
        self.offset.grad = None


torch.manual_seed(0)
model = nn.Linear(4, 1).double()
attack = Attack((1, 4), 0.1)
for _ in range(3):
    attack.step(model, torch.randn(8, 4, dtype=torch.float64))
