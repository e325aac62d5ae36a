import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(80, 1, 8, 8), torch.randint(0, 4, (80,))), batch_size=16, shuffle=True, drop_last=True)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4)
)
epochs = 3
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.2, steps_per_epoch=len(train), epochs=epochs, pct_start=0.3)
lrs = []
for epoch in range(epochs):
    net.train()
    seen = right = 0
    for x, y in train:
        opt.zero_grad()
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        lrs.append(sched.get_last_lr()[0])
        sched.step()
        right += out.detach().argmax(1).eq(y).sum().item()
        seen += y.numel()
    print(epoch, loss.item(), right / seen)
print([round(v, 4) for v in lrs])
