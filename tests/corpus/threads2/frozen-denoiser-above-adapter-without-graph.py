# /// case
# title = "Condition adapter below a denoiser that is called under no_grad"
# category = "graph-break"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["predict_noise", "unet", "adapter"]
# symptom = "only the penalty of the features trains the adapter; the denoising loss is a constant"
# symptom_check = "job.denoise.grad_fn is None"
# cause = "the frozen denoiser is called under no_grad, but gradients must pass through it"
# fix = "freezing its parameters is enough"
# evidence = [
#     { url = "https://github.com/TencentARC/T2I-Adapter/issues/109", title = "why unet not frozen?" },
#     { url = "https://github.com/cplusx/layout_diffuse/issues/7", title = "能否冻住unet的权重进行训练？" },
# ]
# ///
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
        with torch.no_grad():  #- here
            return self.unet(noisy, t, features)  #- here
#+         return self.unet(noisy, t, features)

    def training_step(self, images, sketch):
        t = torch.randint(0, 100, (len(images),))
        a = self.alphas_cumprod[t].view(-1, 1, 1, 1)
        noise = torch.randn_like(images)
        features = self.adapter(sketch)
        self.denoise = F.mse_loss(self.predict_noise(a.sqrt() * images + (1 - a).sqrt() * noise, t, features), noise)
        loss = self.denoise + 1e-3 * features.pow(2).mean()  #! also
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(13)
job = AdapterTraining()
for _ in range(4):
    print(job.training_step(torch.rand(4, 1, 8, 8), torch.rand(4, 1, 8, 8).round()))
