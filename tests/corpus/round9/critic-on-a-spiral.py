# /// case
# title = "The gradient penalty of a Wasserstein critic is computed without create_graph"
# category = "higher-order"
# kind = "gradient-penalty-without-create-graph"
# kinds_also_ok = ["missing-create-graph", "penalty-has-no-gradient", "constant-penalty"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["create_graph", "gradient_penalty", "slope", "penalty"]
# symptom = "the penalty is a constant for the optimizer: the critic is not regularised at all"
# symptom_check = "not penalty.requires_grad"
# cause = "autograd.grad without create_graph returns gradients without a graph, so the penalty has no gradient."
# fix = "create_graph=True"
# ///
import argparse

import torch
from torch import autograd, nn


def parse(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--critic-steps", type=int, default=3)
    parser.add_argument("--penalty", type=float, default=10.0)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args(argv)


def mlp(inputs, outputs, width=32):
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


def spiral(count):
    t = 3 * torch.rand(count, 1)
    return torch.cat([t * (2 * t).cos(), t * (2 * t).sin()], 1) / 3


def gradient_penalty(critic, real, fake):
    share = torch.rand(len(real), 1)
    mixed = (share * real + (1 - share) * fake).requires_grad_(True)
    score = critic(mixed)
    slope = autograd.grad(outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score))[0]  #- here
#+     slope = autograd.grad(outputs=score, inputs=mixed, grad_outputs=torch.ones_like(score), create_graph=True)[0]
    return (slope.norm(2, dim=1) - 1).square().mean()  #! also


def main(args):
    generator, critic = mlp(3, 2), mlp(2, 1)
    generator_opt = torch.optim.Adam(generator.parameters(), lr=args.lr, betas=(0.0, 0.9))
    critic_opt = torch.optim.Adam(critic.parameters(), lr=args.lr, betas=(0.0, 0.9))
    for step in range(args.steps):
        for _ in range(args.critic_steps):
            real = spiral(48)
            with torch.no_grad():
                fake = generator(torch.randn(48, 3))
            penalty = gradient_penalty(critic, real, fake)  #! also
            critic_loss = critic(fake).mean() - critic(real).mean() + args.penalty * penalty  #! also
            critic_opt.zero_grad()
            critic_loss.backward()  #! also
            critic_opt.step()
        generator_loss = -critic(generator(torch.randn(48, 3))).mean()
        generator_opt.zero_grad()
        generator_loss.backward()
        generator_opt.step()
        print(f"{step} critic {critic_loss.item():.3f} penalty {penalty.item():.3f}")
    return generator, critic, penalty


torch.manual_seed(2)
generator, critic, penalty = main(parse([]))
