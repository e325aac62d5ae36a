# /// case
# category = "gradient"
# kind = "parameter-never-used"
# severity = "warning"
# names = ["decoder_b"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.encoder = nn.Linear(8, 4)
        self.decoder_a = nn.Linear(4, 8)
        self.decoder_b = nn.Linear(8, 6)  #! also

    def forward(self, x):
        z = self.decoder_a(self.encoder(self.user(x)))
        return z[:, :6]  #- here
#+         return self.decoder_b(z)


net = TwoTower()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.randn(10, 6)
    opt.zero_grad()
    (net(x) - x).pow(2).mean().backward()
    opt.step()
print(sum(p.grad is None for p in net.parameters()))
