# /// case
# title = "A frozen backbone's batch norm still collects statistics"
# category = "uncovered"
# kind = "frozen-batch-norm-moves"
# severity = "warning"
# names = ["backbone", "BatchNorm1d"]
# symptom = "running_mean of the frozen part moves"
# symptom_check = "not torch.equal(backbone[1].running_mean, kept)"
# cause = "requires_grad=False does not stop the statistics"
# fix = "backbone.eval()"
# evidence = [
#     { url = "https://github.com/lightly-ai/lightly/issues/1438", title = "deactivate_requires_grad does not fix the model!" },
#     { url = "https://github.com/pytorch/pytorch/issues/86590", title = 'Easy way to "freeze" BatchNorm running_mean/running_var' },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(15)
backbone = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU())
probe = nn.Linear(16, 3)
for p in backbone.parameters():
    p.requires_grad = False
kept = backbone[1].running_mean.clone()
model = nn.Sequential(backbone, probe)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
for epoch in range(3):
    model.train()  #! here
#+     backbone.eval()
    for _ in range(4):
        x, y = torch.randn(16, 8) + 2, torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)  #! here
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
