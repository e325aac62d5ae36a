import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.mid = nn.Conv2d(ch, ch, 3, padding=1)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t, extra):
        h = F.silu(self.inp(x)) + extra + t.view(-1, 1, 1, 1) / 100
        return self.out(F.silu(self.mid(h)))


class Adapter(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, ch, 3, padding=1), nn.SiLU(), nn.Conv2d(ch, ch, 3, padding=1))

    def forward(self, sketch):
        return self.body(sketch)


class AdapterTraining:
    def __init__(self):
        self.unet = Denoiser().requires_grad_(False)
        self.adapter = Adapter()
        self.optimizer = torch.optim.AdamW(self.adapter.parameters(), lr=1e-3)
        betas = torch.linspace(1e-4, 2e-2, 100)
        self.alphas_cumprod = torch.cumprod(1 - betas, 0)

    def predict_noise(self, noisy, t, features):
        return self.unet(noisy, t, features)

    def training_step(self, images, sketch):
        t = torch.randint(0, 100, (len(images),))
        a = self.alphas_cumprod[t].view(-1, 1, 1, 1)
        noise = torch.randn_like(images)
        features = self.adapter(sketch)
        self.denoise = F.mse_loss(self.predict_noise(a.sqrt() * images + (1 - a).sqrt() * noise, t, features), noise)
        loss = self.denoise + 1e-3 * features.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(13)
job = AdapterTraining()
for _ in range(4):
    print(job.training_step(torch.rand(4, 1, 8, 8), torch.rand(4, 1, 8, 8).round()))
