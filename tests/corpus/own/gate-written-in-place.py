# /// case
# category = "inplace"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["gate", "sigmoid", "mul_", "h"]
# ///
#-
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.value = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, x):
        gate = torch.sigmoid(self.gate(x))
        value = torch.tanh(self.value(x))
        value *= gate  #- here
#+         value = value * gate
        return value


torch.manual_seed(0)
layer = Gated()
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    loss = layer(x).sum(1).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
