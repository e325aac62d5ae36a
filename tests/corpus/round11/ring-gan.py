# /// case
# title = "The discriminator's gradients are cleared before the generator's backward pass"
# category = "accumulation"
# kind = "zero-grad-before-other-backward"
# kinds_also_ok = ["discriminator-gets-generator-gradient", "stale-gradients", "gradients-of-other-loss-not-cleared", "zero-grad-too-early"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["opt_d", "zero_grad", "loss_g", "loss_d"]
# symptom = "the discriminator's update also contains the gradient of the generator's loss, which pulls it the other way"
# symptom_check = "(lambda z: ([g.update(lr=0.0) for g in gan.opt_d.param_groups + gan.opt_g.param_groups], gan.step(real, z), not torch.allclose(gan.D[0].weight.grad, torch.autograd.grad(gan.d_loss(real, gan.G(z).detach()), gan.D[0].weight)[0], rtol=1e-3, atol=1e-6))[-1])(torch.randn(64, 4))"
# cause = "loss_g.backward() leaves gradients in D, and they are not cleared before loss_d.backward()."
# fix = "opt_d.zero_grad() right before loss_d.backward()"
# ///
import math
import torch
import torch.nn as nn


class GAN:
    def __init__(self, z_dim=4, hidden=32, lr=1e-3):
        self.z_dim = z_dim
        self.G = nn.Sequential(nn.Linear(z_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))
        self.D = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=lr, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=lr, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def noise(self, n):
        return torch.randn(n, self.z_dim)

    def d_loss(self, real, fake):
        on_real, on_fake = self.D(real), self.D(fake)
        return 0.5 * (self.bce(on_real, torch.ones_like(on_real)) + self.bce(on_fake, torch.zeros_like(on_fake)))

    def g_loss(self, fake):
        on_fake = self.D(fake)
        return self.bce(on_fake, torch.ones_like(on_fake))

    def step(self, real, z):
        self.opt_g.zero_grad()  #! also
        self.opt_d.zero_grad()  #- here

        # ---- generator
        fake = self.G(z)
        loss_g = self.g_loss(fake)
        loss_g.backward()  #! also
        self.opt_g.step()

        # ---- discriminator
        loss_d = self.d_loss(real, fake.detach())
#+         self.opt_d.zero_grad()
        loss_d.backward()  #! also
        self.opt_d.step()  #! also

        return loss_g.item(), loss_d.item()


def ring(n, radius=2.0, modes=8):
    k = torch.randint(0, modes, (n,)) * (2 * math.pi / modes)
    centers = torch.stack([k.cos(), k.sin()], dim=1) * radius
    return centers + 0.05 * torch.randn(n, 2)


torch.manual_seed(77)
torch.set_num_threads(1)
gan = GAN()
history = {"g": [], "d": []}

for it in range(150):
    real = ring(64)
    g, d = gan.step(real, gan.noise(64))
    history["g"].append(g)
    history["d"].append(d)
    if it % 50 == 49:
        with torch.no_grad():
            samples = gan.G(gan.noise(256))
        print(f"{it + 1:5d}  G {g:.3f}  D {d:.3f}  mean radius {samples.norm(dim=1).mean().item():.2f}")
