# /// case
# title = "Gradient penalty takes the norm over the channel axis only"
# category = "higher-order"
# kind = "gradient-penalty-wrong-norm"
# severity = "warning"
# names = ["gradients", "norm", "gradient_penalty"]
# symptom = "each pixel's derivative is pulled to one, not the gradient of a sample"
# symptom_check = "gan.norms_shape == (10, 8, 8)"
# cause = "norm over dim=1 of an image tensor"
# fix = "flatten each sample first"
# evidence = [
#     { url = "https://github.com/Zeleni9/pytorch-wgan/issues/40", title = "A mistake on gradient penalty" },
#     { url = "https://github.com/caogang/wgan-gp/issues/47", title = "bug in calc_gradient_penalty?" },
# ]
# ///
import torch
import torch.nn as nn
from torch import autograd


class Critic(nn.Module):
    def __init__(self, ch=1, size=8):
        super().__init__()
        act = nn.LeakyReLU(0.2)
        self.main = nn.Sequential(nn.Conv2d(ch, 8, 3, 2, 1), act, nn.Conv2d(8, 16, 3, 2, 1), act)
        self.out = nn.Linear(16 * (size // 4) ** 2, 1)

    def forward(self, x):
        return self.out(self.main(x).flatten(1))


class WGANGP:
    def __init__(self, lambda_term=10.0, critic_iter=2):
        self.D = Critic()
        self.G = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
        self.d_opt = torch.optim.Adam(self.D.parameters(), lr=1e-4, betas=(0.5, 0.9))
        self.g_opt = torch.optim.Adam(self.G.parameters(), lr=1e-4, betas=(0.5, 0.9))
        self.lambda_term, self.critic_iter = lambda_term, critic_iter

    def gradient_penalty(self, real, fake):
        eta = torch.rand(len(real), 1, 1, 1)
        interpolated = (eta * real + (1 - eta) * fake).requires_grad_(True)
        scores = self.D(interpolated)
        gradients = autograd.grad(scores, interpolated, torch.ones_like(scores), create_graph=True)[0]
        norms = gradients.norm(2, dim=1)  #- here
#+         norms = gradients.flatten(1).norm(2, dim=1)
        self.norms_shape = tuple(norms.shape)
        return ((norms - 1) ** 2).mean() * self.lambda_term  #! also

    def train(self, batches):
        for real in batches:
            for _ in range(self.critic_iter):
                fake = self.G(torch.randn(len(real), 6)).detach()
                self.d_opt.zero_grad()
                d_loss = self.D(fake).mean() - self.D(real).mean() + self.gradient_penalty(real, fake)
                d_loss.backward()
                self.d_opt.step()
            self.g_opt.zero_grad()
            (-self.D(self.G(torch.randn(len(real), 6))).mean()).backward()
            self.g_opt.step()
        return d_loss.item()


torch.manual_seed(27)
gan = WGANGP()
print(gan.train(torch.rand(3, 10, 1, 8, 8) * 2 - 1))
