import torch
from torch import nn

torch.manual_seed(0)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(f, y, ts):
    out = [y]
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h / 2 * k1)
        k3 = f(t0 + h / 2, y + h / 2 * k2)
        k4 = f(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return torch.stack(out)


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0.0, 2.0, 30)
with torch.no_grad():
    true_y = rk4(lambda _, y: y**3 @ A, torch.tensor([[2.0, 0.0]]), t)
func = Field()
opt = torch.optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(1, 5):
    start = torch.randint(0, 20, (8,))
    y0 = true_y[start, 0]
    target = torch.stack([true_y[start + i, 0] for i in range(6)])
    opt.zero_grad()
    pred = rk4(func, y0, t[:6])
    loss = torch.mean(torch.abs(pred - target))
    loss.backward()
    opt.step()
    print(f"Iter {itr:02d} | Total Loss {loss.item():.6f}")
