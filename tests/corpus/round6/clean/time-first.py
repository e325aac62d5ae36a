import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.inp = nn.Linear(3, dim)
        self.attn = nn.MultiheadAttention(dim, 3)
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        h = self.inp(x.transpose(0, 1))
        h = h + self.attn(h, h, h, need_weights=False)[0]
        return self.out(h.mean(0))


torch.manual_seed(27)
net = Encoder()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
x = torch.randn(50, 8, 3)
y = (x[..., 0].amax(1) > 1.3).long()
for _ in range(10):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
assert torch.allclose(net(x)[:2], net(x[:2]), atol=1e-5)
print(loss.item())
