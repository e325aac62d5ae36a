# /// case
# category = "training"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class PinballLoss(nn.Module):
    def __init__(self, q):
        super().__init__()
        self.q = q

    def forward(self, pred, target):
        err = target - pred  #! here
        return torch.maximum(self.q * err, (self.q - 1) * err).mean()


net = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = PinballLoss(0.9)
for _ in range(5):
    x = torch.randn(25, 3)
    y = x.sum(1) + torch.randn(25)
    loss = criterion(net(x), y)  #- here
#+     loss = criterion(net(x).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
