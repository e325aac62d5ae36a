import torch
from torch import nn

torch.manual_seed(8)
epochs, loader = 6, [(torch.randn(4, 3), torch.randn(4, 2)) for _ in range(5)]
net = nn.Linear(3, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(
    opt,
    max_lr=1e-2,
    total_steps=epochs * len(loader),
)
for epoch in range(epochs):
    for x, y in loader:
        loss = nn.functional.l1_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    print(epoch, sched.get_last_lr())
