# /// case
# category = "gradient"
# kind = "zero-product"
# severity = "warning"
# names = ["gate", "value", "self.gate"]
# ///
#-
import torch
from torch import nn


class GatedShift(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(width))  #! here
        self.value = nn.Parameter(torch.zeros(width))  #- also
#+         self.value = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x + self.gate * self.value  #! also


torch.manual_seed(0)
shift, head = GatedShift(6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*shift.parameters(), *head.parameters()], lr=0.05)
history = []
for x in torch.randn(5, 12, 6):
    loss = (head(shift(x)).squeeze(1) - x.sum(1) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print(history, shift.gate.detach())
