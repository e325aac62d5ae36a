import torch
import torch.nn as nn
import torch.nn.functional as F


class SignSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        w, = ctx.saved_tensors
        return grad * (w.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().mean(dim=1, keepdim=True)
        return F.linear(x, SignSTE.apply(self.weight) * scale, self.bias)


torch.manual_seed(109)
net = nn.Sequential(BinaryLinear(10, 32), nn.BatchNorm1d(32), nn.Hardtanh(), BinaryLinear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(120, 10)
y = (x[:, :5].sum(1) > 0).long()
for epoch in range(4):
    net.train()
    for xb, yb in zip(x.split(30), y.split(30)):
        loss = F.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in net:
                if isinstance(layer, BinaryLinear):
                    layer.weight.clamp_(-1, 1)
    print(epoch, loss.item())
