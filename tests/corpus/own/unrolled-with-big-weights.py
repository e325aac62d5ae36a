# /// case
# category = "numeric"
# kind = "exploding-gradient"
# severity = "warning"
# names = ["net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Unrolled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n, n))  #- here
#+         self.w = nn.Parameter(torch.randn(n, n) / n**0.5 * 0.9)
        self.inp = nn.Linear(3, n)
        self.out = nn.Linear(n, 1)

    def forward(self, x):
        h = self.inp(x[:, 0])
        for t in range(1, x.shape[1]):
            h = h @ self.w + self.inp(x[:, t])  #! here
        return self.out(h)


net = Unrolled(24)
opt = torch.optim.SGD(net.parameters(), lr=1e-12)
for _ in range(5):
    x = torch.randn(8, 14, 3)
    loss = (net(x).squeeze(1) - x.sum((1, 2))).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), net.inp.weight.grad.norm().item())
