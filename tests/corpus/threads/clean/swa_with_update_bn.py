import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(53)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
average = AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data = [torch.randn(16, 4) + 2 for _ in range(4)]
for epoch in range(3):
    for x in data:
        opt.zero_grad()
        (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        opt.step()
    average.update_parameters(net)
update_bn(data, average)
average.eval()
with torch.no_grad():
    print(average(data[0]).mean().item())
