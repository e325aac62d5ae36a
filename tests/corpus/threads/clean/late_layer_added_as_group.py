import torch
from torch import nn

torch.manual_seed(17)
body = nn.Sequential(nn.Linear(6, 10), nn.ReLU())
heads = nn.ModuleList([nn.Linear(10, 2)])
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.05, momentum=0.9)
for task in range(3):
    if task:
        heads.append(nn.Linear(10, 2))
        opt.add_param_group({"params": heads[task].parameters()})
    for _ in range(4):
        x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
        opt.zero_grad()
        nn.functional.cross_entropy(heads[task](body(x)), y).backward()
        opt.step()
print(len(opt.param_groups))
