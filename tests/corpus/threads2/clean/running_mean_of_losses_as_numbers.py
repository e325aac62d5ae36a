import torch
from torch import nn

torch.manual_seed(9)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
ema = {"mean": 1.0, "spread": 1.0}
for it in range(10):
    x = torch.randn(20, 6)
    out = net(x)
    terms = {"mean": (out[:, 0] - x[:, 0]).pow(2).mean(), "spread": (out.var(0) - 1).pow(2).mean()}
    loss = sum(term / (ema[k] + 1e-3) for k, term in terms.items())
    opt.zero_grad()
    loss.backward()
    opt.step()
    for k, term in terms.items():
        ema[k] = 0.9 * ema[k] + 0.1 * term.item()
print(ema)
