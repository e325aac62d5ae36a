# /// case
# title = "The transition matrix is built by torch.tensor from the learned coefficients"
# category = "graph-break"
# kind = "tensor-rebuilt-from-values"
# kinds_also_ok = ["torch-tensor-detaches", "graph-broken-by-constructor", "parameters-get-no-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["torch.tensor", "transition", "log_stiffness", "log_damping"]
# symptom = "only the initial state is fitted; stiffness and damping keep their first guess"
# symptom_check = "plant.log_stiffness.grad is None and plant.log_damping.grad is None"
# cause = "torch.tensor copies numbers; the matrix has no history."
# fix = "assemble the matrix with torch.stack"
# ///
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
        k, c = self.log_stiffness.exp(), self.log_damping.exp()  #! also
        return torch.tensor([[1.0, self.dt], [-k * self.dt, 1.0 - c * self.dt]])  #- here
#+         return torch.eye(2) + self.dt * torch.stack([torch.zeros(()), torch.ones(()), -k, -c]).view(2, 2)

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
        loss.backward()  #! also
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
