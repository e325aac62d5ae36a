import torch
from torch import nn


def rk4(f, z, t, h):
    k1 = f(t, z)
    k2 = f(t + h / 2, z + h / 2 * k1)
    k3 = f(t + h / 2, z + h / 2 * k2)
    k4 = f(t + h, z + h * k3)
    return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class CheckpointedSolve(torch.autograd.Function):
    """Keeps the states on the grid only, and builds each step's graph again in the backward pass."""

    @staticmethod
    def forward(ctx, field, times, z0, *parameters):
        states = [z0]
        with torch.no_grad():
            for t, following in zip(times[:-1], times[1:]):
                states.append(rk4(field, states[-1], t, following - t))
        ctx.field, ctx.times = field, times
        ctx.save_for_backward(*states)
        ctx.parameters = parameters
        return torch.stack(states)

    @staticmethod
    def backward(ctx, grad_path):
        states, parameters = ctx.saved_tensors, ctx.parameters
        adjoint = grad_path[-1]
        totals = [torch.zeros_like(p) for p in parameters]
        for k in reversed(range(len(states) - 1)):
            with torch.enable_grad():
                z = states[k].detach().requires_grad_()
                step = rk4(ctx.field, z, ctx.times[k], ctx.times[k + 1] - ctx.times[k])
            adjoint, *pieces = torch.autograd.grad(step, (z, *parameters), adjoint)
            totals = [total + piece for total, piece in zip(totals, pieces)]
            adjoint = adjoint + grad_path[k]
        return (None, None, adjoint, *totals)


class VectorField(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        self.damping = nn.Parameter(torch.tensor(0.0))
        self.evaluations = 0

    def forward(self, t, z):
        self.evaluations += 1
        return self.net(z) - self.damping * z


class NeuralODE(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field

    def forward(self, z0, times):
        return CheckpointedSolve.apply(self.field, times, z0, *self.field.parameters())


def spiral(t, z):
    turn = torch.tensor([[-0.15, 2.0], [-2.0, -0.15]])
    return z.pow(3) @ turn.T


@torch.no_grad()
def reference_path(z0, times):
    path = [z0]
    for t, following in zip(times[:-1], times[1:]):
        path.append(rk4(spiral, path[-1], t, following - t))
    return torch.stack(path)


torch.manual_seed(20)
times = torch.linspace(0, 1.5, 16)
starts = torch.randn(24, 2).clamp(-1.2, 1.2)
observed = reference_path(starts, times)
model = NeuralODE(VectorField())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
curve = []
for iteration in range(70):
    window = torch.randint(0, 10, (1,)).item()
    piece = slice(window, window + 6)
    path = model(observed[window], times[piece])
    loss = (path - observed[piece]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
with torch.no_grad():
    error = (model(starts, times) - observed).abs().mean().item()
print(f"loss {curve[0]:.4f} -> {curve[-1]:.4f}, whole path {error:.4f}, {model.field.evaluations} evaluations")
