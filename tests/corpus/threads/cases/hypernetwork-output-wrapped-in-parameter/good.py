import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(18)


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, x, generated):
        weight = generated.view(3, 5)
        return F.linear(x, weight, self.bias)


hyper = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 15))
target = Target()
opt = torch.optim.Adam([*hyper.parameters(), *target.parameters()], lr=1e-2)
embedding = torch.randn(4)
x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
for _ in range(10):
    loss = F.cross_entropy(target(x, hyper(embedding)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
