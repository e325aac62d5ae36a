import torch
from torch import nn

torch.manual_seed(0)


def fake_quant(x, bits=4):
    scale = x.detach().abs().max() / (2 ** (bits - 1) - 1) + 1e-8
    q = torch.clamp(torch.round(x / scale), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * scale
    return x + (q - x).detach()


class QLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(fake_quant(x), fake_quant(self.weight), self.bias)


net = nn.Sequential(QLinear(6, 12), nn.ReLU(), QLinear(12, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for x in torch.randn(5, 18, 6):
    loss = nn.functional.cross_entropy(net(x), (x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
