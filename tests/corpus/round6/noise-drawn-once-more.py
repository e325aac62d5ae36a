# /// case
# title = "The target is another noise than the one added"
# category = "loss"
# kind = "wrong-loss-operand"
# kinds_also_ok = ["independent-random-numbers", "target-independent-of-input"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["noise", "q_sample"]
# symptom = "the loss stays at 1"
# symptom_check = "loss.item() > 0.85"
# cause = "q_sample draws noise of its own"
# fix = "hand the noise over"
# ///
import torch
import torch.nn as nn


class Diffusion:
    def __init__(self, steps=50):
        beta = torch.linspace(1e-3, 0.1, steps)
        self.alpha_bar = torch.cumprod(1 - beta, 0)
        self.steps = steps

    def q_sample(self, x0, t):  #- also
#+     def q_sample(self, x0, t, noise):
        a = self.alpha_bar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * torch.randn_like(x0)  #- also
#+         return a.sqrt() * x0 + (1 - a).sqrt() * noise


class Denoiser(nn.Module):
    def __init__(self, dim=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None] / 50], 1))


torch.manual_seed(35)
diffusion, model = Diffusion(), Denoiser()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
angle = torch.rand(512) * 6.283
data = torch.stack([angle.cos(), angle.sin()], 1)
for it in range(200):
    x0 = data[torch.randint(0, 512, (128,))]
    t = torch.randint(0, diffusion.steps, (128,))
    noise = torch.randn_like(x0)  #! also
    x_t = diffusion.q_sample(x0, t)  #- here
#+     x_t = diffusion.q_sample(x0, t, noise)
    loss = nn.functional.mse_loss(model(x_t, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
