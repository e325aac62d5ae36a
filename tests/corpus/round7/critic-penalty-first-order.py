# /// case
# title = "The gradient penalty is computed without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term", "gradient-penalty-without-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gradient_penalty", "create_graph"]
# symptom = "the penalty has no graph and does not act on the critic"
# symptom_check = "not penalty.requires_grad"
# cause = "autograd.grad gives constants without create_graph"
# fix = "create_graph=True"
# ///
import torch
import torch.nn as nn


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic(between)
    (slope,) = torch.autograd.grad(score.sum(), between)  #- here
#+     (slope,) = torch.autograd.grad(score.sum(), between, create_graph=True)
    return (slope.norm(2, dim=1) - 1).square().mean()  #! also


torch.manual_seed(25)
critic, generator = mlp(2, 24, 24, 1), mlp(3, 24, 2)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
generator_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
for iteration in range(4):
    for _ in range(3):
        real = torch.randn(32, 2) * 0.3 + torch.tensor([1.0, -1.0])
        with torch.no_grad():
            fake = generator(torch.randn(32, 3))
        penalty = gradient_penalty(critic, real, fake)
        critic_loss = critic(fake).mean() - critic(real).mean() + 10.0 * penalty  #! also
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()
    generator_loss = -critic(generator(torch.randn(32, 3))).mean()
    generator_opt.zero_grad()
    generator_loss.backward()
    generator_opt.step()
    print(iteration, critic_loss.item(), penalty.item())
