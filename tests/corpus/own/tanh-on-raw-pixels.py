# /// case
# category = "numeric"
# kind = "saturated-activation"
# severity = "warning"
# names = ["x"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 3))  #! also
opt = torch.optim.SGD(net.parameters(), lr=0.01)
pixels = torch.randint(0, 256, (48, 64)).float()
labels = torch.randint(0, 3, (48,))
for epoch in range(6):
    for i in range(0, 48, 16):
        x = pixels[i : i + 16]  #- here
#+         x = pixels[i : i + 16] / 255.0 - 0.5
        loss = nn.functional.cross_entropy(net(x), labels[i : i + 16])  #! here
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
