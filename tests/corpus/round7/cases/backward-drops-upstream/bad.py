import torch
import torch.nn as nn
import torch.nn.functional as F


class Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        t = torch.tanh(F.softplus(x))
        slope = t + x * torch.sigmoid(x) * (1 - t * t)
        return slope


class MishLayer(nn.Module):
    def forward(self, x):
        return Mish.apply(x)


torch.manual_seed(95)
model = nn.Sequential(nn.Linear(4, 16), MishLayer(), nn.Linear(16, 16), MishLayer(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(60, 4)
y = x.square().mean(dim=1, keepdim=True)
for epoch in range(4):
    for xb, yb in zip(x.split(20), y.split(20)):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
