# /// case
# title = "scheduler.step() before the first optimizer.step()"
# category = "optimizer-wiring"
# kind = "scheduler-before-optimizer"
# severity = "warning"
# names = ["sched"]
# difficulty = "easy"
# symptom = "UserWarning: Detected call of lr_scheduler.step() before optimizer.step(); the first rate is skipped"
# warns = "Detected call of `lr_scheduler.step()` before `optimizer.step()`"
# cause = "wrong order"
# fix = "opt.step(); sched.step()"
# evidence = [
#     { url = "https://github.com/zju3dv/NeuralRecon/issues/51" },
#     { url = "https://github.com/Strawberry-Eat-Mango/PCT_Pytorch/issues/21" },
#     { url = "https://github.com/michuanhaohao/reid-strong-baseline/issues/190" },
# ]
# ///
import torch
from torch import nn, optim

torch.manual_seed(6)
net = nn.Linear(4, 4)
opt = optim.SGD(net.parameters(), lr=0.1)
sched = optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
for epoch in range(4):
    sched.step()  #- here
    x = torch.randn(8, 4)
    loss = (net(x) - x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
#+     sched.step()
    print(epoch, loss.item())
