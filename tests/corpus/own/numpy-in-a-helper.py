# /// case
# category = "mode"
# kind = "graph-break-numpy"
# severity = "warning"
# names = ["numpy", "smooth", "logits", "curve"]
# ///
#-
import numpy as np
import torch
from torch import nn


def smoothed(curve, width=3):
    kernel = np.ones(width) / width  #-
    rows = [np.convolve(row, kernel, mode="same") for row in curve.detach().numpy()]  #- here
    return torch.from_numpy(np.stack(rows)).float()  #- also
#+     kernel = torch.ones(1, 1, width) / width
#+     return nn.functional.conv1d(curve.unsqueeze(1), kernel, padding=width // 2).squeeze(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 12)
        self.bias = nn.Parameter(torch.zeros(12))

    def forward(self, x):
        return smoothed(self.encode(x)) + self.bias


torch.manual_seed(0)
model = Model()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 6)
    loss = (model(x) - x.repeat(1, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
