import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        levels = x / scale
        ctx.save_for_backward((levels >= low) & (levels <= high))
        return levels.round().clamp(low, high) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None, None


class QuantLinear(nn.Linear):
    def __init__(self, *args, bits=4, momentum=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.high = 2 ** (bits - 1) - 1
        self.momentum = momentum
        self.observing = True
        self.register_buffer("input_range", torch.zeros(()))

    def observe(self, x):
        peak = x.detach().abs().amax()
        if self.input_range == 0:
            self.input_range.copy_(peak)
        else:
            self.input_range.lerp_(peak, self.momentum)

    def forward(self, x):
        if self.training and self.observing:
            self.observe(x)
        weight_scale = self.weight.detach().abs().amax(1, keepdim=True) / self.high
        x = Quantise.apply(x, self.input_range.clone() / self.high, -self.high, self.high)
        w = Quantise.apply(self.weight, weight_scale, -self.high, self.high)
        return F.linear(x, w, self.bias)


def freeze_observers(module):
    if isinstance(module, QuantLinear):
        module.observing = False


torch.manual_seed(44)
net = nn.Sequential(nn.Embedding(64, 24), nn.LayerNorm(24), QuantLinear(24, 48), nn.GELU(), QuantLinear(48, 8))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
table = torch.randint(8, (64,))
for epoch in range(60):
    if epoch == 40:
        net.apply(freeze_observers)
    ids = torch.randint(64, (64,))
    loss = F.cross_entropy(net(ids), table[ids])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(epoch, loss.item(), net[2].input_range.item())

net.eval()
with torch.no_grad():
    accuracy = (net(torch.arange(64)).argmax(-1) == table).float().mean()
print("accuracy", accuracy.item())
