# /// case
# title = "Quantiser's learnable scale gets None as gradient"
# category = "custom-function"
# kind = "custom-function-missing-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["scale", "backward", "FakeQuant"]
# difficulty = "medium"
# symptom = "QAT trains; the step size `scale` has grad None and never changes."
# symptom_check = "net[0].scale.grad is None"
# cause = "backward returns None for scale although it is a learnable Parameter."
# fix = "Return the LSQ gradient for scale."
# evidence = [{ url = "https://github.com/pytorch/ao/issues/2988" }, { url = "https://github.com/huggingface/optimum-quanto/issues/146" }]
# ///
"""Quantisation-aware training with a learned step size."""
import torch
import torch.nn.functional as F
from torch import nn


class FakeQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, scale, qmin, qmax):
        v = w / scale
        q = v.round().clamp(qmin, qmax)
        ctx.save_for_backward(v, q)
        ctx.bounds = qmin, qmax
        return q * scale

    @staticmethod
    def backward(ctx, grad):
        v, q = ctx.saved_tensors
        qmin, qmax = ctx.bounds
        inside = (v >= qmin) & (v <= qmax)
        grad_w = grad * inside  #! here
        return grad_w, None, None, None  #- here
#+         grad_scale = (grad * torch.where(inside, q - v, q)).sum()
#+         return grad_w, grad_scale, None, None


class QuantLinear(nn.Linear):
    def __init__(self, n_in, n_out, bits=3):
        super().__init__(n_in, n_out)
        self.qmin, self.qmax = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        self.scale = nn.Parameter(2 * self.weight.detach().abs().mean() / self.qmax**0.5)  #! also

    def forward(self, x):
        return F.linear(x, FakeQuant.apply(self.weight, self.scale, self.qmin, self.qmax), self.bias)  #! also


torch.manual_seed(0)
net = nn.Sequential(QuantLinear(8, 24), nn.ReLU(), QuantLinear(24, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
x = torch.randn(256, 8)
y = torch.stack([x[:, 0] - x[:, 1], x[:, 2].abs()], 1)
for epoch in range(40):
    loss = F.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), [round(m.scale.item(), 4) for m in net if isinstance(m, QuantLinear)])
