import torch
from torch import nn

torch.manual_seed(49)
net = nn.Linear(5, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
total, warm = 24, 6
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / warm, (total - s) / (total - warm)))
for epoch in range(3):
    for _ in range(8):
        opt.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(8, 5)), torch.randint(0, 2, (8,))).backward()
        opt.step()
        sched.step()
    print(epoch, sched.get_last_lr())
