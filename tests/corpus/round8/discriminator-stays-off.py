# /// case
# title = "The discriminator's flags are switched off for the generator's step and never on again"
# category = "flags"
# kind = "requires-grad-not-restored"
# kinds_also_ok = ["frozen-parameter", "toggled-flag-left-off"]
# severity = "error"
# names = ["toggle", "requires_grad_", "discriminator"]
# symptom = "the discriminator's backward of the second iteration raises"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "After the generator's step the discriminator's parameters still do not require grad, so that its own loss has no history."
# fix = "switch them on before the discriminator's step"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def toggle(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


class ConditionalGAN:
    """Translates one half of a signal into the other, with an L1 term as in pix2pix."""

    def __init__(self, width=24, weight=10.0):
        self.generator = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 8))
        self.discriminator = nn.Sequential(nn.Linear(16, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
        self.weight = weight
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-3)
        self.opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3)

    def judge(self, a, b):
        return self.discriminator(torch.cat([a, b], dim=1))

    def discriminator_step(self, a, b, fake):
#+         toggle(self.discriminator, True)
        real, fake = self.judge(a, b), self.judge(a, fake.detach())  #! here
        loss = 0.5 * (F.mse_loss(real, torch.ones_like(real)) + F.mse_loss(fake, torch.zeros_like(fake)))
        self.opt_d.zero_grad()
        loss.backward()  #! also
        self.opt_d.step()
        return loss.item()

    def generator_step(self, a, b, fake):
        toggle(self.discriminator, False)  #! here
        verdict = self.judge(a, fake)
        loss = F.mse_loss(verdict, torch.ones_like(verdict)) + self.weight * F.l1_loss(fake, b)
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()  #! here
        return loss.item()  #! also


torch.manual_seed(123)
gan = ConditionalGAN()
for step in range(10):
    signal = torch.sin(torch.rand(24, 1) * 6 + torch.linspace(0, 6, 16))
    a, b = signal.chunk(2, dim=1)
    fake = gan.generator(a)
    print(step, gan.discriminator_step(a, b, fake), gan.generator_step(a, b, fake))
