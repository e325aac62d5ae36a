import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, steps, width=32):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.a, self.b, self.c = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)
        nn.init.zeros_(self.c.weight)
        nn.init.zeros_(self.c.bias)

    def forward(self, x, t):
        h = F.silu(self.a(x) + self.time(t))
        return self.c(F.silu(self.b(h)) + h)


class Diffusion:
    def __init__(self, steps=15):
        self.steps = steps
        self.beta = torch.linspace(1e-3, 0.3, steps)
        self.keep = torch.cumprod(1 - self.beta, 0)

    def loss(self, model, x):
        t = torch.randint(0, self.steps, (len(x),))
        noise = torch.randn_like(x)
        keep = self.keep[t][:, None]
        return F.mse_loss(model(keep.sqrt() * x + (1 - keep).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.steps)):
            eps = model(x, torch.full((n,), i))
            x = (x - self.beta[i] / (1 - self.keep[i]).sqrt() * eps) / (1 - self.beta[i]).sqrt()
            if i:
                x += self.beta[i].sqrt() * torch.randn_like(x)
        return x


torch.manual_seed(40)
diffusion, model = Diffusion(), Denoiser(15)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(20):
    angle = torch.rand(64) * 6.2832
    loss = diffusion.loss(model, torch.stack([angle.cos(), angle.sin()], 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), diffusion.sample(model, 50).norm(dim=1).mean().item())
