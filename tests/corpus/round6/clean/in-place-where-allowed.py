import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.a = nn.Conv2d(1, ch, 3, padding=1)
        self.b = nn.Conv2d(ch, ch, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(ch, 3)

    def forward(self, x):
        h = self.act(self.a(x))
        r = self.b(h)
        r += h
        r = self.act(r)
        return self.head(r.mean((2, 3)))


torch.manual_seed(21)
net = Mixer()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for it in range(5):
    x = torch.randn(12, 1, 8, 8)
    keep = torch.rand_like(x) < 0.9
    x[~keep] = 0
    logits = net(x)
    logits[:, 2] -= 1
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 3, (12,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
