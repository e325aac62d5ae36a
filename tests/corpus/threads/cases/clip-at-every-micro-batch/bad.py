import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(3)
net = nn.Linear(9, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-9)
max_norm, k = 0.5, 4
for step in range(3):
    micro = [(torch.rand(4, 9) * (i + 1), torch.rand(4, 1) + 3) for i in range(k)]
    opt.zero_grad()
    for x, y in micro:
        loss = nn.functional.mse_loss(net(x), y) / k
        loss.backward()
        clip_grad_norm_(net.parameters(), max_norm)
    applied = net.weight.grad.clone()
    opt.step()
total = sum(nn.functional.mse_loss(net(x), y) / k for x, y in micro)
gw, gb = torch.autograd.grad(total, [net.weight, net.bias])
norm = torch.cat([gw.flatten(), gb]).norm()
once = gw * min(1.0, max_norm / (float(norm) + 1e-6))
