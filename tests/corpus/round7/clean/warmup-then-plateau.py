import torch
import torch.nn as nn

torch.manual_seed(132)
x = torch.randn(100, 4)
y = torch.sin(x.sum(1, keepdim=True))
train, held = slice(0, 80), slice(80, 100)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
per_batch = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=8)
per_epoch = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
seen = 0
for epoch in range(6):
    model.train()
    for rows in torch.randperm(80).split(20):
        optimizer.zero_grad()
        loss = (model(x[train][rows]) - y[train][rows]).square().mean()
        loss.backward()
        optimizer.step()
        if seen < 8:
            per_batch.step()
        seen += 1
    model.eval()
    with torch.no_grad():
        val = (model(x[held]) - y[held]).square().mean()
    if seen >= 8:
        per_epoch.step(val)
    print(epoch, loss.item(), val.item(), optimizer.param_groups[0]["lr"])
