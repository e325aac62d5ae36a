import torch
from torch import nn

torch.manual_seed(0)


class Cell(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.W, self.U = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        nn.init.normal_(self.W.weight, std=0.1)

    def forward(self, z, x):
        return torch.tanh(self.W(z) + self.U(x))


class DEQ(nn.Module):
    def __init__(self, d, iters=15):
        super().__init__()
        self.cell, self.iters = Cell(d), iters

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(self.iters):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if self.training:
            z0 = z.clone().detach().requires_grad_()
            f0 = self.cell(z0, x)

            def backward_hook(grad):
                g = grad
                for _ in range(self.iters):
                    g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return g

            z.register_hook(backward_hook)
        return z


net = nn.Sequential(nn.Linear(4, 8), DEQ(8), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(32, 4)
y = x.prod(1, keepdim=True)
for step in range(6):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item())
