import torch
import torch.nn as nn


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        square = x * x
        ctx.save_for_backward(x)
        return square * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 16), nn.Linear(16, 1, bias=False)

    def forward(self, r):
        return self.outer(Cubed.apply(self.inner(r)))


torch.manual_seed(62)
net = Potential()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
r = torch.randn(80, 2)
force = -2 * r
for step in range(20):
    pos = r.clone().requires_grad_()
    energy = net(pos).sum()
    (grad,) = torch.autograd.grad(energy, pos, create_graph=True)
    loss = (-grad - force).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
