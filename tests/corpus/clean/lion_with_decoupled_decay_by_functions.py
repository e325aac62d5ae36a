import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 20), nn.GELU(), nn.Linear(20, 1))
momentum = {p: torch.zeros_like(p) for p in net.parameters()}


@torch.no_grad()
def lion_step(params, lr=1e-3, b1=0.9, b2=0.99, wd=0.01):
    for p in params:
        g, m = p.grad, momentum[p]
        update = (b1 * m + (1 - b1) * g).sign_()
        p.mul_(1 - lr * wd).add_(update, alpha=-lr)
        m.lerp_(g, 1 - b2)
        p.grad = None


x = torch.randn(64, 5)
y = x[:, :1].abs()
for epoch in range(4):
    for xb, yb in zip(x.split(16), y.split(16)):
        loss = nn.functional.l1_loss(net(xb), yb)
        loss.backward()
        lion_step(net.parameters())
    print(epoch, loss.item())
