import torch
import torch.nn as nn
from torch.amp import GradScaler, autocast


class Fitter:
    def __init__(self, net, lr=0.1, clip=1.0):
        self.net, self.clip = net, clip
        self.opt = torch.optim.SGD(net.parameters(), lr=lr)
        self.scaler = GradScaler("cpu", init_scale=2.0 ** 12)
        self.norms = []

    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.bfloat16):
            out = self.net(x)
        loss = nn.functional.cross_entropy(out.float(), y)
        self.scaler.scale(loss).backward()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.norms.append(norm.item())
        return loss.item()


torch.manual_seed(50)
net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 3))
before = [p.detach().clone() for p in net.parameters()]
fitter = Fitter(net)
x = torch.randn(60, 9)
y = x[:, :3].argmax(1)
for _ in range(10):
    value = fitter.step(x, y)
print(value, fitter.norms[-1])
