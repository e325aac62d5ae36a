# /// case
# title = "Gradient of the shift vector is summed over the wrong dimension"
# category = "custom-function"
# kind = "custom-function-gradient-shape"
# severity = "error"
# names = ["shift", "backward", "FusedAffine"]
# difficulty = "easy"
# symptom = "RuntimeError in backward: FusedAffineBackward returned an invalid gradient."
# raises = "RuntimeError"
# raises_message = "returned an invalid gradient at index 2"
# cause = "shift has shape [features], but grad_shift is summed over the features and has shape [batch, time]."
# fix = "Sum the gradient over batch and time."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/94184" }, { url = "https://docs.pytorch.org/docs/stable/notes/extending.html" }]
# ///
import torch
from torch import nn


class FusedAffine(torch.autograd.Function):
    """y = x * scale + shift over the last dimension."""

    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * scale + shift

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        dims = tuple(range(grad.ndim - 1))
        grad_x = grad * scale
        grad_scale = (grad * x).sum(dims)
        grad_shift = grad.sum(-1)  #- here
#+         grad_shift = grad.sum(dims)
        return grad_x, grad_scale, grad_shift  #! here


class FiLM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return FusedAffine.apply(x, self.scale, self.shift)  #! also


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 10), FiLM(10), nn.GELU(), nn.Linear(10, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(20, 7, 6)
y = x.mean(-1, keepdim=True)
for _ in range(10):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
