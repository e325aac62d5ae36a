import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def make_loader(n=33):
    data = TensorDataset(torch.randn(n, 6), torch.randint(0, 2, (n,)))
    return DataLoader(data, batch_size=8, shuffle=True)


class TabularNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.mlp = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.mlp(self.norm(x))


net = TabularNet()
opt = torch.optim.Adam(net.parameters())
for epoch in range(2):
    for x, y in make_loader():
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
