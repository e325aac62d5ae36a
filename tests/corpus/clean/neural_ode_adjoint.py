import torch
from torch import nn


def rk4(f, y, t0, t1, steps):
    h = (t1 - t0) / steps
    t = t0
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, [a + h / 2 * k for a, k in zip(y, k1)])
        k3 = f(t + h / 2, [a + h / 2 * k for a, k in zip(y, k2)])
        k4 = f(t + h, [a + h * k for a, k in zip(y, k3)])
        y = [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4)]
        t = t + h
    return y


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, y0, *params):
        with torch.no_grad():
            (y1,) = rk4(lambda t, y: [field(t, y[0])], [y0], 0.0, 1.0, 4)
        ctx.field = field
        ctx.save_for_backward(y1, *params)
        return y1

    @staticmethod
    def backward(ctx, grad):
        y1, *params = ctx.saved_tensors

        def augmented(t, state):
            y, a = state[0], state[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                out = ctx.field(t, y)
                gy, *gp = torch.autograd.grad(out, (y, *params), -a, allow_unused=True)
            gp = [torch.zeros_like(p) if g is None else g for p, g in zip(params, gp)]
            return [out.detach(), gy, *gp]

        start = [y1, grad, *(torch.zeros_like(p) for p in params)]
        _, gy, *gp = rk4(augmented, start, 1.0, 0.0, 4)
        return None, gy, *gp


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 2))

    def forward(self, t, y):
        return self.net(torch.cat([y, torch.full_like(y[:, :1], t)], dim=1))


torch.manual_seed(0)
field = Field()
readout = nn.Linear(2, 1)
opt = torch.optim.Adam([*field.parameters(), *readout.parameters()], lr=5e-3)
for _ in range(3):
    y0 = torch.randn(20, 2)
    y1 = Adjoint.apply(field, y0, *field.parameters())
    loss = nn.functional.binary_cross_entropy_with_logits(readout(y1).squeeze(1), (y0.prod(1) > 0).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
