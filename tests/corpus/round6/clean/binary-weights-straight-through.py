import torch
import torch.nn as nn
import torch.nn.functional as F


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * (w.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().mean()
        return F.linear(x, scale * Sign.apply(self.weight), self.bias)


torch.manual_seed(6)
net = nn.Sequential(BinaryLinear(10, 64), nn.BatchNorm1d(64), nn.Hardtanh(), BinaryLinear(64, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(128, 10)
y = (x.sum(1) > 0).long()
for _ in range(15):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for m in (net[0], net[3]):
            m.weight.clamp_(-1, 1)
print(loss.item())
