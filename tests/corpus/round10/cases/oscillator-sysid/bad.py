import torch
from torch import nn, optim


class Oscillator(nn.Module):
    def __init__(self, dt, stiffness=1.0, damping=0.1):
        super().__init__()
        self.dt = dt
        self.log_stiffness = nn.Parameter(torch.tensor(stiffness).log())
        self.log_damping = nn.Parameter(torch.tensor(damping).log())
        self.x0 = nn.Parameter(torch.tensor([0.5, 0.0]))

    def transition(self):
        k, c = self.log_stiffness.exp(), self.log_damping.exp()
        return torch.tensor([[1.0, self.dt], [-k * self.dt, 1.0 - c * self.dt]])

    def rollout(self, steps):
        A, x, xs = self.transition(), self.x0, []
        for _ in range(steps):
            x = A @ x
            xs.append(x)
        return torch.stack(xs)


def measure(stiffness, damping, steps, dt, sigma):
    plant = Oscillator(dt, stiffness, damping)
    with torch.no_grad():
        plant.x0.copy_(torch.tensor([1.0, -0.3]))
        positions = plant.rollout(steps)[:, 0]
    return positions + sigma * torch.randn(steps)


def identify(plant, y, iters):
    opt = optim.Adam(plant.parameters(), lr=0.03)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, iters)
    losses = []
    for _ in range(iters):
        residual = plant.rollout(len(y))[:, 0] - y
        loss = residual.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(11)
y = measure(stiffness=1.8, damping=0.35, steps=50, dt=0.08, sigma=0.01)
plant = Oscillator(dt=0.08)
losses = identify(plant, y, iters=150)
print("mse %.5f -> %.5f" % (losses[0], losses[-1]))
print("k %.3f c %.3f" % (plant.log_stiffness.exp().item(), plant.log_damping.exp().item()))
