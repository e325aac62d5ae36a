# /// case
# title = "Weights are initialised with standard deviation one, whatever the width"
# category = "scale"
# kind = "unit-variance-initialisation"
# kinds_also_ok = ["exploding-activations", "bad-initialisation", "exploding-gradients"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["normal_", "initialise", "Denoiser"]
# symptom = "activations and gradients grow with each layer; the loss begins above a million"
# symptom_check = "losses[0] > 1e4"
# cause = "With weights of variance one each layer multiplies the scale of its input by the root of half its width."
# fix = "kaiming_normal_, which takes the fan-in into account"
# ///
import torch
from torch import nn


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", torch.exp(torch.linspace(0, 4, width // 2)))

    def forward(self, t):
        angle = t.unsqueeze(1) * self.frequencies
        return torch.cat([angle.sin(), angle.cos()], dim=1)


class Denoiser(nn.Module):
    def __init__(self, dim=2, width=64, depth=5, time=16):
        super().__init__()
        self.time = TimeEmbedding(time)
        layers, size = [], dim + time
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.net = nn.Sequential(*layers, nn.Linear(size, dim))
        self.apply(self.initialise)  #! also

    @staticmethod
    def initialise(module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight)  #- here
#+             nn.init.kaiming_normal_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


class Schedule:
    def __init__(self, steps=50):
        self.steps = steps
        self.alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.1, steps), 0)

    def diffuse(self, x):
        t = torch.randint(0, self.steps, (len(x),))
        noise = torch.randn_like(x)
        keep = self.alpha_bar[t].unsqueeze(1)
        return keep.sqrt() * x + (1 - keep).sqrt() * noise, t / self.steps, noise


torch.manual_seed(71)
denoiser, schedule = Denoiser(), Schedule()
optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
losses = []
for step in range(20):
    angle = 6.2832 * torch.rand(96)
    points = torch.stack([angle.cos(), angle.sin()], 1)
    noisy, t, noise = schedule.diffuse(points)
    loss = (denoiser(noisy, t) - noise).square().mean()  #! also
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    losses.append(loss.item())
print(f"from {losses[0]:.3f} to {losses[-1]:.3f}")
