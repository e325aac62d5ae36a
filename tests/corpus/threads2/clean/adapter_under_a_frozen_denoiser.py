import torch
import torch.nn as nn


class AdapterJob:
    def __init__(self):
        self.unet = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.unet.requires_grad_(False)
        self.adapter = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.optimizer = torch.optim.AdamW(self.adapter.parameters(), lr=1e-3)

    def step(self, images, sketch):
        noise, t = torch.randn_like(images), torch.rand(len(images), 1, 1, 1)
        noisy = (1 - t).sqrt() * images + t.sqrt() * noise
        pred = self.unet(torch.cat([noisy, self.adapter(sketch)], 1))
        loss = nn.functional.mse_loss(pred, noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(5)
job = AdapterJob()
print([job.step(torch.rand(3, 1, 6, 6), torch.rand(3, 1, 6, 6)) for _ in range(3)])
