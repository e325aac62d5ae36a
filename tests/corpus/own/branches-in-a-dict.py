# /// case
# category = "wiring"
# kind = "module-not-registered"
# severity = "warning"
# names = ["branches"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Linear(5, 10)
        self.branches = {task: nn.Linear(10, 1) for task in tasks}  #- here
#+         self.branches = nn.ModuleDict({task: nn.Linear(10, 1) for task in tasks})

    def forward(self, x):
        h = self.trunk(x).relu()
        return {task: branch(h) for task, branch in self.branches.items()}


net = MultiTask(["a", "b"])
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    out = net(torch.randn(12, 5))
    loss = sum(v.pow(2).mean() for v in out.values())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
