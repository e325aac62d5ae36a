import torch
from torch import nn

torch.manual_seed(0)


class FakeQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, qmin, qmax):
        q = torch.round(x / scale)
        ctx.save_for_backward((q >= qmin) & (q <= qmax))
        return q.clamp(qmin, qmax) * scale

    @staticmethod
    def backward(ctx, g):
        (inside,) = ctx.saved_tensors
        return g * inside, None, None, None


class QLinear(nn.Linear):
    def __init__(self, *a):
        super().__init__(*a)
        self.register_buffer("act_max", torch.zeros(()))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.act_max.copy_(torch.maximum(0.9 * self.act_max, x.abs().max()))
        xq = FakeQuant.apply(x, self.act_max.clamp_min(1e-8) / 127, -127, 127)
        wq = FakeQuant.apply(self.weight, self.weight.detach().abs().max() / 7, -7, 7)
        return nn.functional.linear(xq, wq, self.bias)


net = nn.Sequential(QLinear(6, 24), nn.ReLU(), QLinear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
X = torch.randn(60, 6)
Y = (X[:, 0] > X[:, 1]).long()
for epoch in range(4):
    net.train()
    for i in torch.randperm(60).split(20):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (net(X).argmax(1) == Y).float().mean().item())
