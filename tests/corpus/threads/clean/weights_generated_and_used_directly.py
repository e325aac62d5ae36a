import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20)
hyper = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4 * 2 + 2))
opt = torch.optim.Adam(hyper.parameters(), lr=1e-2)
for _ in range(10):
    task = torch.randn(3)
    generated = hyper(task)
    weight, bias = generated[:8].view(2, 4), generated[8:]
    x = torch.randn(32, 4)
    y = (x @ task.new_ones(4) * task[0] > 0).long()
    loss = F.cross_entropy(F.linear(x, weight, bias), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
