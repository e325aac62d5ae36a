# /// case
# title = "The custom function returns None for a learnable scale"
# category = "function"
# kind = "custom-backward-returns-none"
# kinds_also_ok = ["wrong-custom-gradient", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "FakeQuantize", "step_size"]
# symptom = "the step size never receives a gradient"
# symptom_check = "layer.step_size.grad is None"
# cause = "backward gives None for the second input"
# fix = "return its gradient"
# ///
import torch
import torch.nn as nn


class FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step_size, low, high):
        scaled = x / step_size
        ctx.save_for_backward(scaled, step_size)
        ctx.bounds = (low, high)
        return scaled.round().clamp(low, high) * step_size

    @staticmethod
    def backward(ctx, grad):
        scaled, step_size = ctx.saved_tensors
        low, high = ctx.bounds
        inside = ((scaled >= low) & (scaled <= high)).to(grad.dtype)
        return grad * inside, None, None, None  #- here
#+         local = inside * (scaled.round() - scaled) + (1 - inside) * scaled.round().clamp(low, high)
#+         grad_step = (grad * local).sum().reshape(step_size.shape)
#+         return grad * inside, grad_step, None, None


class QuantLinear(nn.Linear):
    def __init__(self, n_in, n_out, bits=3):
        super().__init__(n_in, n_out)
        self.bounds = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        self.step_size = nn.Parameter(2 * self.weight.detach().abs().mean() / self.bounds[1] ** 0.5)

    def forward(self, x):
        weight = FakeQuantize.apply(self.weight, self.step_size, *self.bounds)  #! also
        return nn.functional.linear(x, weight, self.bias)


torch.manual_seed(96)
layer = QuantLinear(8, 12)
model = nn.Sequential(layer, nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(60, 8), torch.randint(0, 3, (60,))
for step in range(12):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), layer.step_size.item())
