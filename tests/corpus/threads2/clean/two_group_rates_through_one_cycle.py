import torch
from torch import nn

torch.manual_seed(37)
backbone, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 2)
optimizer = torch.optim.SGD(
    [{"params": backbone.parameters()}, {"params": head.parameters()}], lr=1e-3, momentum=0.9
)
epochs, per_epoch = 2, 5
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1e-3, 1e-1], total_steps=epochs * per_epoch)
for epoch in range(epochs):
    for _ in range(per_epoch):
        x = torch.randn(16, 8)
        loss = nn.functional.cross_entropy(head(backbone(x)), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
print(loss.item())
