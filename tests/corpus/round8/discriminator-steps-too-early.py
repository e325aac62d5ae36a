# /// case
# title = "The generator's loss uses a verdict from before the discriminator's step"
# category = "in-place"
# kind = "step-between-forward-and-backward"
# kinds_also_ok = ["modified-by-inplace-operation", "stale-graph"]
# severity = "error"
# names = ["d_opt", "g_loss", "step"]
# symptom = "the generator's backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "d_opt.step() changes the discriminator's weights in place, and the generator's backward needs those of the forward."
# fix = "judge the fake anew after the discriminator's step"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/39141", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation?" },
# ]
# ///
import torch
import torch.nn as nn


class Gan:
    def __init__(self, noise=6, width=24, lr=1e-3):
        self.noise = noise
        self.generator = nn.Sequential(nn.Linear(noise, width), nn.ReLU(), nn.Linear(width, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.5, 0.99))
        self.d_opt = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=(0.5, 0.99))

    def hinge(self, on_real, on_fake):
        return (1 - on_real).relu().mean() + (1 + on_fake).relu().mean()

    def train_step(self, real):
        fake = self.generator(torch.randn(len(real), self.noise))
        on_real = self.discriminator(real)
        on_fake = self.discriminator(fake)  #! also
        d_loss = self.hinge(on_real, on_fake)
        self.d_opt.zero_grad()
        d_loss.backward(retain_graph=True)  #! also
        self.d_opt.step()  #! here

        g_loss = -on_fake.mean()  #- here
#+         g_loss = -self.discriminator(fake).mean()
        self.g_opt.zero_grad()
        g_loss.backward()  #! here
        self.g_opt.step()
        return d_loss.item(), g_loss.item()


def curves(n):
    t = torch.linspace(0, 1, 8)
    return torch.sin(6.28 * (t + torch.rand(n, 1))) * (0.5 + torch.rand(n, 1))


torch.manual_seed(44)
gan = Gan()
for iteration in range(12):
    report = gan.train_step(curves(32))
    if iteration % 4 == 0:
        print(iteration, *report)
