import torch
from torch import nn


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x)
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() < 1.0), None


class Grating(nn.Module):
    def __init__(self, pixels):
        super().__init__()
        self.latent = nn.Parameter(0.3 * torch.randn(pixels))

    def forward(self):
        level = Binarize.apply(self.latent, 0.0)
        return torch.polar(torch.ones_like(level), torch.pi * level)

    @torch.no_grad()
    def confine(self):
        self.latent.clamp_(-0.99, 0.99)


def orders(field):
    return torch.fft.fft(field).abs().square() / len(field) ** 2


torch.manual_seed(33)
grating = Grating(64)
wanted = torch.zeros(64)
wanted[[3, 5, 59, 61]] = 0.2
optimizer = torch.optim.SGD(grating.parameters(), lr=20.0, momentum=0.9)
best, best_state = float("inf"), None
for step in range(30):
    loss = (orders(grating()) - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    grating.confine()
    if loss.item() < best:
        best, best_state = loss.item(), grating.latent.detach().clone()
print("best", best, int((best_state > 0).sum()), "pixels up")
