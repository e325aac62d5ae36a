# /// case
# title = "The backward of a learned quantiser returns None for its scale"
# category = "function"
# kind = "missing-gradient-in-custom-backward"
# kinds_also_ok = ["backward-returns-none", "learned-input-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backward", "scale", "FakeQuantise"]
# symptom = "the scales get no gradient and do not change"
# symptom_check = "all(m.scale.grad is None for m in quantisers)"
# cause = "backward gives a gradient for x only, though scale is a parameter too."
# fix = "return the gradient of the scale"
# ///
import torch
import torch.nn as nn


class FakeQuantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        level = x / scale
        ctx.save_for_backward(level)
        ctx.low, ctx.high = low, high
        return level.clamp(low, high).round() * scale

    @staticmethod
    def backward(ctx, grad_output):
        level, = ctx.saved_tensors
        inside = ((level >= ctx.low) & (level <= ctx.high)).to(grad_output.dtype)
        quantised = level.clamp(ctx.low, ctx.high).round()
        for_scale = (grad_output * (quantised - inside * level)).sum()  #! also
        return grad_output * inside, None, None, None  #- here
#+         return grad_output * inside, for_scale.reshape(1), None, None


class Quantised(nn.Module):
    def __init__(self, layer: nn.Linear, bits: int = 3):
        super().__init__()
        self.layer = layer
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        start = 2 * layer.weight.detach().abs().mean() / self.high ** 0.5
        self.scale = nn.Parameter(start.reshape(1))

    def forward(self, x):
        weight = FakeQuantise.apply(self.layer.weight, self.scale, self.low, self.high)  #! also
        return nn.functional.linear(x, weight, self.layer.bias)


torch.manual_seed(76)
net = nn.Sequential(Quantised(nn.Linear(10, 24)), nn.ReLU(), Quantised(nn.Linear(24, 3)))
quantisers = [m for m in net.modules() if isinstance(m, Quantised)]
optimizer = torch.optim.Adam([
    {"params": [p for n, p in net.named_parameters() if "scale" not in n], "lr": 5e-3},
    {"params": [m.scale for m in quantisers], "lr": 1e-3},
])
x = torch.randn(96, 10)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), [m.scale.item() for m in quantisers])
