# /// case
# title = "The gradient penalty of a Wasserstein critic is computed without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["gradient-penalty-without-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gradient_penalty", "create_graph", "grad"]
# symptom = "the penalty has no gradient and changes nothing"
# symptom_check = "not penalty.requires_grad"
# cause = "autograd.grad without create_graph gives a constant, so that the penalty depends on no weight of the critic."
# fix = "create_graph=True"
# ///
import torch
import torch.nn as nn


class Critic(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).squeeze(1)


def gradient_penalty(critic: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    verdict = critic(between)
    slope, = torch.autograd.grad(verdict, between, torch.ones_like(verdict))  #- here
#+     slope, = torch.autograd.grad(verdict, between, torch.ones_like(verdict), create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()  #! also


def swiss_roll(n: int) -> torch.Tensor:
    t = 1.5 + 3 * torch.rand(n, 1)
    return torch.cat([t * t.cos(), t * t.sin()], dim=1) / 4


torch.manual_seed(81)
generator = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
critic = Critic()
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
c_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
for iteration in range(5):
    for _ in range(3):
        real = swiss_roll(32)
        with torch.no_grad():
            fake = generator(torch.randn(32, 3))
        penalty = gradient_penalty(critic, real, fake)
        c_loss = critic(fake).mean() - critic(real).mean() + 10.0 * penalty  #! also
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_loss = -critic(generator(torch.randn(32, 3))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    print(iteration, c_loss.item(), penalty.item(), g_loss.item())
