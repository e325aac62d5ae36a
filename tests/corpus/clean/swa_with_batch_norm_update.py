import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 5)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
average = AveragedModel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
flat = SWALR(opt, swa_lr=0.02)
for epoch in range(5):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(model(a), b).backward()
        opt.step()
    if epoch >= 2:
        average.update_parameters(model)
        flat.step()
    else:
        cosine.step()
update_bn(loader, average)
average.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(average(x), x.sum(1, keepdim=True)).item())
