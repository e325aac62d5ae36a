# /// case
# category = "wiring"
# kind = "module-built-each-forward"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
#+         self.norm = nn.LayerNorm(width)

    def forward(self, x):
        value, gate = self.inner(x).chunk(2, dim=-1)
        return nn.LayerNorm(value.shape[-1])(value) * gate.sigmoid()  #- here
#+         return self.norm(value) * gate.sigmoid()


torch.manual_seed(0)
model = nn.Sequential(Gate(5), Gate(5), nn.Linear(5, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(8, 5)
    loss = (model(x).squeeze(-1) - x.prod(-1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
