# /// case
# title = "One discriminator listed twice, the other never optimized"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# severity_by_writer = "error"
# names = ["mpd", "params_d", "opt_d"]
# difficulty = "easy"
# symptom = "Only a UserWarning about duplicate parameters; the period discriminator keeps its random weights."
# symptom_check = "not any(p is task.mpd.convs[0].weight for g in task.opt_d.param_groups for p in g['params'])"
# warns = "duplicate parameters"
# cause = "The parameter list concatenates self.mrd twice, so the multi-period discriminator is not in the optimizer (and the other one is in it twice)."
# fix = "Concatenate the parameters of mrd and mpd."
# evidence = [{ url = "https://github.com/line/open-universe/issues/5" }]
# ///
"""Toy vocoder GAN with a multi-resolution and a multi-period discriminator."""
import torch
import torch.nn.functional as F
from torch import nn


class ResolutionDisc(nn.Module):
    def __init__(self, strides=(2, 4)):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(1, 8, 9, stride=s, padding=4) for s in strides)
        self.post = nn.ModuleList(nn.Conv1d(8, 1, 3, padding=1) for _ in strides)

    def forward(self, wav):
        return [post(F.leaky_relu(conv(wav), 0.1)) for conv, post in zip(self.convs, self.post)]


class PeriodDisc(nn.Module):
    def __init__(self, periods=(2, 4)):
        super().__init__()
        self.periods = periods
        self.convs = nn.ModuleList(nn.Conv2d(1, 8, (5, 1), padding=(2, 0)) for _ in periods)
        self.post = nn.ModuleList(nn.Conv2d(8, 1, (3, 1), padding=(1, 0)) for _ in periods)

    def forward(self, wav):
        out = []
        for p, conv, post in zip(self.periods, self.convs, self.post):
            x = wav.view(wav.shape[0], 1, -1, p)
            out.append(post(F.leaky_relu(conv(x), 0.1)))
        return out


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(4, 16, 7, padding=3), nn.LeakyReLU(0.1), nn.Conv1d(16, 1, 7, padding=3), nn.Tanh())

    def forward(self, mel):
        return self.net(F.interpolate(mel, scale_factor=8, mode="nearest"))


class VocoderTask:
    def __init__(self):
        self.gen, self.mrd, self.mpd = Generator(), ResolutionDisc(), PeriodDisc()
        params_d = list(self.mrd.parameters()) + list(self.mrd.parameters())  #- here
#+         params_d = list(self.mrd.parameters()) + list(self.mpd.parameters())
        self.opt_g = torch.optim.AdamW(self.gen.parameters(), lr=2e-3, betas=(0.8, 0.99))
        self.opt_d = torch.optim.AdamW(params_d, lr=2e-3, betas=(0.8, 0.99))  #! here

    def scores(self, wav):
        return self.mrd(wav) + self.mpd(wav)

    def step(self, mel, wav):
        fake = self.gen(mel)
        real_scores, fake_scores = self.scores(wav), self.scores(fake.detach())
        loss_d = sum(((1 - r) ** 2).mean() + (f**2).mean() for r, f in zip(real_scores, fake_scores))
        self.opt_d.zero_grad()
        loss_d.backward()
        self.opt_d.step()  #! also
        loss_g = sum(((1 - f) ** 2).mean() for f in self.scores(fake)) + 10 * F.l1_loss(fake, wav)
        self.opt_g.zero_grad()
        loss_g.backward()
        self.opt_g.step()
        return loss_d.item(), loss_g.item()


torch.manual_seed(0)
task = VocoderTask()
t = torch.linspace(0, 1, 128)
for it in range(8):
    freq = torch.randint(2, 6, (8, 1, 1))
    wav = 0.8 * torch.sin(2 * torch.pi * freq * t)
    mel = F.avg_pool1d(wav, 8).repeat(1, 4, 1) * torch.tensor([1.0, 0.5, -0.5, 2.0]).view(1, 4, 1)
    loss_d, loss_g = task.step(mel, wav)
print(f"d {loss_d:.3f} g {loss_g:.3f}")
