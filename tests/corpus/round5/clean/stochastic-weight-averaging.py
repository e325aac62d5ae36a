import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(49)
model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
swa = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
x = torch.randn(96, 6)
y = (x[:, 0] > x[:, 1]).long()
for epoch in range(8):
    model.train()
    for idx in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 4:
        average.update_parameters(model)
        swa.step()
update_bn(x.split(24), average)
average.eval()
with torch.no_grad():
    print((average(x).argmax(1) == y).float().mean().item())
