# /// case
# title = "The averaged model is evaluated with batch statistics that are not its own"
# category = "uncovered"
# kind = "swa-without-bn-update"
# severity = "warning"
# names = ["swa_model", "update_bn"]
# symptom = "the running statistics are not those of the averaged weights"
# symptom_check = "(lambda c: (update_bn([x for x, _ in loader], c), not torch.allclose(c.module[1].running_mean, swa_model.module[1].running_mean))[1])(__import__('copy').deepcopy(swa_model))"
# cause = "update_bn is never called"
# fix = "update_bn(loader, swa_model)"
# evidence = [
#     { url = "https://github.com/timgaripov/swa/issues/7", title = "About calculating parameters of BN" },
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/14866", title = "Potential bug in StochasticWeightAveraging causing incorrect batchnorm statistics" },
# ]
# ///
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(4, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 1))
swa_model = AveragedModel(model)  #! also
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
swa_scheduler = SWALR(optimizer, swa_lr=0.02)
loader = [(torch.randn(16, 4) + 3, torch.randn(16, 1)) for _ in range(4)]
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if epoch >= 2:
        swa_model.update_parameters(model)  #! here
        swa_scheduler.step()
#+ update_bn([x for x, _ in loader], swa_model)
swa_model.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(swa_model(loader[0][0]), loader[0][1]).item(), update_bn.__name__)  #! here
