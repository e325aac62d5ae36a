import torch
import torch.nn as nn
import torch.nn.functional as F


class HashNet(nn.Module):
    def __init__(self, fields=16, bits=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(fields, 32), nn.ReLU(), nn.Linear(32, bits))
        self.decode = nn.Linear(bits, fields)

    def code(self, x):
        soft = torch.tanh(self.encode(x))
        hard = torch.where(soft >= 0, 1.0, -1.0)
        return soft + (hard - soft).detach(), soft

    def forward(self, x):
        code, soft = self.code(x)
        return self.decode(code), soft


def quantisation_gap(soft):
    return (soft.abs() - 1).square().mean()


torch.manual_seed(2)
data = torch.randn(128, 5) @ torch.randn(5, 16)
net = HashNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    for rows in torch.randperm(128).split(32):
        output, soft = net(data[rows])
        loss = F.mse_loss(output, data[rows]) + 0.1 * quantisation_gap(soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
with torch.no_grad():
    bits = net.code(data)[0] > 0
print(bits.float().mean().item())
