# /// case
# title = "The generator's step has the discriminator's gradient"
# category = "accumulation"
# kind = "other-loss-gradient"
# kinds_also_ok = ["missing-detach", "missing-zero-grad"]
# severity = "warning"
# names = ["fake_images", "g_optimizer", "zero_grad"]
# symptom = "the generator is pushed by both losses, against each other"
# symptom_check = "not torch.allclose(used, own, atol=1e-7)"
# cause = "the discriminator's loss reaches the generator, whose gradients are cleared before it"
# fix = "detach the images in the discriminator's step"
# evidence = [
#     { url = "https://github.com/heykeetae/Self-Attention-GAN/issues/48", title = "detach fake image when updating the discriminator" },
#     { url = "https://github.com/alterzero/DBPN-Pytorch/issues/37", title = "When training the discriminator, detach the output tensor of generator?" },
# ]
# ///
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, z_dim=8, g_lr=1e-3, d_lr=4e-3):
        self.z_dim = z_dim
        self.G = nn.Sequential(nn.Linear(z_dim, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh())
        self.D = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(16, 32)), nn.LeakyReLU(0.1), nn.Linear(32, 1))
        self.g_optimizer = torch.optim.Adam(self.G.parameters(), g_lr, (0.0, 0.9))
        self.d_optimizer = torch.optim.Adam(self.D.parameters(), d_lr, (0.0, 0.9))

    def reset_grad(self):
        self.d_optimizer.zero_grad()
        self.g_optimizer.zero_grad()

    def train(self, loader):
        for step, real_images in enumerate(loader):
            # ---- discriminator, hinge loss
            self.reset_grad()  #! also
            fake_images = self.G(torch.randn(len(real_images), self.z_dim))
            d_loss_real = torch.relu(1.0 - self.D(real_images)).mean()
            d_loss_fake = torch.relu(1.0 + self.D(fake_images)).mean()  #- here
#+             d_loss_fake = torch.relu(1.0 + self.D(fake_images.detach())).mean()
            (d_loss_real + d_loss_fake).backward()  #! also
            self.d_optimizer.step()

            # ---- generator
            fake_images = self.G(torch.randn(len(real_images), self.z_dim))
            g_loss_fake = -self.D(fake_images).mean()
            own = torch.autograd.grad(g_loss_fake, self.G[0].weight, retain_graph=True)[0]
            g_loss_fake.backward()
            used = self.G[0].weight.grad.clone()
            self.g_optimizer.step()  #! also
        return own, used


torch.manual_seed(50)
loader = [torch.tanh(torch.randn(24, 16) + 0.5) for _ in range(6)]
own, used = Trainer().train(loader)
print((used - own).abs().max().item())
