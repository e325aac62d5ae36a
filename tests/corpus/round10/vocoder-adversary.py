# /// case
# title = "Before the discriminator's loss it is the generator's optimizer that clears gradients, again"
# category = "optimizer"
# kind = "wrong-optimizer-zeroed"
# kinds_also_ok = ["missing-zero-grad", "stale-discriminator-gradients", "gradients-of-other-loss-accumulate"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer_g", "optimizer_d", "zero_grad", "discriminator"]
# symptom = "the discriminator's gradients grow from step to step and contain those of the generator's loss"
# symptom_check = "(lambda fixed, pair: abs(train_step(*pair)['norm_d'] - torch.cat([g.flatten() for g in torch.autograd.grad(discriminator_loss(pair[1], generator(pair[0])), list(discriminator.parameters()))]).norm().item()) > 1e-3)([g.update(lr=0.0) for o in (optimizer_g, optimizer_d) for g in o.param_groups], harmonics(8))"
# cause = "The discriminator's own optimizer is never asked to clear."
# fix = "optimizer_d.zero_grad()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(4)

generator = nn.Sequential(
    nn.ConvTranspose1d(10, 24, 8, stride=4, padding=2),
    nn.LeakyReLU(0.1),
    nn.Conv1d(24, 24, 7, padding=3),
    nn.LeakyReLU(0.1),
    nn.Conv1d(24, 1, 7, padding=3),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    nn.Conv1d(1, 16, 9, stride=4, padding=4),
    nn.LeakyReLU(0.2),
    nn.Conv1d(16, 16, 9, stride=4, padding=4),
    nn.LeakyReLU(0.2),
    nn.Conv1d(16, 1, 3, padding=1),
)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.8, 0.99))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.8, 0.99))


def harmonics(batch, frames=16, hop=4):
    pitch = 0.05 + 0.25 * torch.rand(batch, 1)
    time = torch.arange(frames * hop)
    wave = 0.6 * torch.sin(2 * torch.pi * pitch * time)
    mel = torch.exp(-((pitch - torch.linspace(0.05, 0.3, 10)) ** 2) / 0.002)
    envelope = wave.view(batch, 1, frames, hop).mean(-1)
    return mel[:, :, None] + 2 * envelope, wave[:, None]


def generator_loss(real, fake):
    return (discriminator(fake) - 1).square().mean() + 5 * F.l1_loss(fake, real)


def discriminator_loss(real, fake):
    return (discriminator(real) - 1).square().mean() + discriminator(fake).square().mean()


def train_step(mel, wave):
    fake = generator(mel)
    optimizer_g.zero_grad()
    loss_g = generator_loss(wave, fake)
    loss_g.backward()  #! also
    optimizer_g.step()

    optimizer_g.zero_grad()  #- here
#+     optimizer_d.zero_grad()
    loss_d = discriminator_loss(wave, fake.detach())
    loss_d.backward()  #! also
    norm_d = nn.utils.get_total_norm(p.grad for p in discriminator.parameters())
    optimizer_d.step()  #! also
    return {"g": loss_g.item(), "d": loss_d.item(), "norm_d": norm_d.item()}


log = [train_step(*harmonics(16)) for _ in range(60)]
print(log[0])
print(log[-1])
