import torch
from torch import nn

torch.manual_seed(0)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, Sign.apply(self.weight), self.bias)


net = nn.Sequential(BinaryLinear(8, 16), nn.Hardtanh(), BinaryLinear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(5, 24, 8):
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-1, 1)
print(loss.item())
