import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(4, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 1))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
swa_scheduler = SWALR(optimizer, swa_lr=0.02)
loader = [(torch.randn(16, 4) + 3, torch.randn(16, 1)) for _ in range(4)]
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if epoch >= 2:
        swa_model.update_parameters(model)
        swa_scheduler.step()
swa_model.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(swa_model(loader[0][0]), loader[0][1]).item(), update_bn.__name__)
