# /// case
# category = "wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["model", "working"]
# ///
#-
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
#+ model = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! here
model = copy.deepcopy(model)  #- also
for x in torch.randn(4, 10, 3):
    optimizer.zero_grad()
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
