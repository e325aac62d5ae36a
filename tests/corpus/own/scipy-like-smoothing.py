# /// case
# category = "mode"
# kind = "graph-break-numpy"
# severity = "warning"
# names = ["smooth", "curve"]
# ///
#-
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
output = nn.Parameter(torch.zeros(()))
opt = torch.optim.Adam([*net.parameters(), output], lr=1e-2)
grid = torch.linspace(0, 1, 30).unsqueeze(1)
for _ in range(3):
    curve = net(grid).squeeze(1)
    smooth = np.convolve(curve.detach().numpy(), np.ones(3) / 3, mode="same")  #- here
    smooth = torch.from_numpy(smooth).float() + output  #- also
#+     smooth = nn.functional.conv1d(curve[None, None], torch.ones(1, 1, 3) / 3, padding=1)[0, 0] + output
#+     assert np.isfinite(smooth.detach().numpy()).all()
    loss = (smooth - grid.squeeze(1).sin()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
