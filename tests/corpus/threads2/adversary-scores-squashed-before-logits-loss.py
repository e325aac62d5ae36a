# /// case
# title = "Discriminator ends in a sigmoid and its loss takes logits"
# category = "loss"
# kind = "double-sigmoid"
# severity = "warning"
# names = ["D", "Sigmoid", "BCEWithLogitsLoss"]
# symptom = "scores lie between 0 and 1, so the loss sees probabilities of 0.5 to 0.73"
# symptom_check = "isinstance(gan.discriminator[-1], nn.Sigmoid)"
# cause = "sigmoid in the net and in the loss"
# fix = "no Sigmoid in the net"
# evidence = [
#     { url = "https://github.com/carpedm20/DCGAN-tensorflow/issues/15", title = "the loss is not correct" },
# ]
# ///
import torch
import torch.nn as nn


class DCGAN:
    def __init__(self, z_dim=6, gf=8, df=8, lr=2e-3):
        self.z_dim = z_dim
        self.generator = nn.Sequential(
            nn.ConvTranspose2d(z_dim, gf, 4), nn.BatchNorm2d(gf), nn.ReLU(), nn.ConvTranspose2d(gf, 1, 4, 2, 1), nn.Tanh()
        )
        self.discriminator = nn.Sequential(
            nn.Conv2d(1, df, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(df, 1, 4), nn.Flatten(), nn.Sigmoid()  #- here
#+             nn.Conv2d(1, df, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(df, 1, 4), nn.Flatten()
        )
        self.bce = nn.BCEWithLogitsLoss()  #! here
        self.d_optim = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=(0.5, 0.999))
        self.g_optim = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.999))

    def sample(self, n):
        return self.generator(torch.randn(n, self.z_dim, 1, 1))

    def update_d(self, images):
        D, D_ = self.discriminator(images), self.discriminator(self.sample(len(images)).detach())
        d_loss = self.bce(D, torch.ones_like(D)) + self.bce(D_, torch.zeros_like(D_))  #! also
        self.d_optim.zero_grad()
        d_loss.backward()
        self.d_optim.step()
        return d_loss

    def update_g(self, n):
        D_ = self.discriminator(self.sample(n))
        g_loss = self.bce(D_, torch.ones_like(D_))  #! also
        self.g_optim.zero_grad()
        g_loss.backward()
        self.g_optim.step()
        return g_loss


torch.manual_seed(78)
gan = DCGAN()
for counter in range(5):
    images = torch.tanh(torch.randn(8, 1, 8, 8) + 1)
    d_loss, g_loss = gan.update_d(images), gan.update_g(8)
scores = gan.discriminator(images)
print(d_loss.item(), g_loss.item())
