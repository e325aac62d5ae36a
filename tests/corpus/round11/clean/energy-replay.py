import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + 0.05 * x.square().sum(1)


class PersistentChains:
    """Langevin sampler with a buffer of earlier states, some of which are started afresh."""

    def __init__(self, count, steps=8, step_size=0.3, noise=0.05, restart=0.05):
        self.states = torch.randn(count, 2)
        self.steps, self.step_size, self.noise, self.restart = steps, step_size, noise, restart

    def __call__(self, energy, batch):
        picked = torch.randperm(len(self.states))[:batch]
        x = self.states[picked]
        fresh = torch.rand(batch) < self.restart
        x[fresh] = torch.randn(int(fresh.sum()), 2)
        x = self.run(energy, x)
        self.states[picked] = x
        return x

    def run(self, energy, x):
        was_training = energy.training
        energy.eval().requires_grad_(False)
        for _ in range(self.steps):
            x.requires_grad_(True)
            downhill, = torch.autograd.grad(energy(x).sum(), x)
            x = x.detach() - self.step_size * downhill.clamp(-3, 3) + self.noise * torch.randn_like(x)
        energy.train(was_training).requires_grad_(True)
        return x.detach()


def two_arcs(count):
    angle = torch.rand(count) * 2.2 + 0.4
    sign = torch.where(torch.rand(count) < 0.5, 1.0, -1.0)
    return torch.stack([1.5 * angle.cos(), sign * (1.2 * angle.sin() + 0.2)], 1) + 0.05 * torch.randn(count, 2)


def contrastive_step(energy, optimizer, real, negatives, regulariser=0.05):
    positive, negative = energy(real), energy(negatives)
    contrast = positive.mean() - negative.mean()
    loss = contrast + regulariser * (positive.square() + negative.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return contrast.item()


torch.manual_seed(18)
energy, chains = Energy(), PersistentChains(512)
optimizer = torch.optim.Adam(energy.parameters(), lr=4e-3, betas=(0.5, 0.99))
decay = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
contrasts = []
for iteration in range(140):
    real = two_arcs(96)
    real += 0.02 * torch.randn_like(real)
    negatives = chains(energy, 96)
    contrasts.append(contrastive_step(energy, optimizer, real, negatives))
    decay.step()
    if iteration % 35 == 0:
        print(f"{iteration:4d} contrast {contrasts[-1]:.4f}")
samples = chains.run(energy, torch.randn(200, 2))
nearest = torch.cdist(samples, two_arcs(1000)).amin(1)
print(f"mean distance of samples from the data {nearest.mean().item():.3f}")
