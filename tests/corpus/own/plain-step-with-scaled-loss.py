# /// case
# category = "wiring"
# kind = "scaled-gradient-stepped"
# severity = "warning"
# names = ["scaler", "optimizer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for x in torch.randn(4, 12, 4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(x).float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()  #- here
#+     scaler.step(optimizer)
#+     scaler.update()
    print(loss.item())
