# /// case
# title = "Moving average writes the momentary decay over its setting"
# category = "identity"
# kind = "ema-decay-overwritten"
# severity = "warning"
# names = ["decay", "self.decay", "get_decay"]
# symptom = "the setting is lost after one step: the rate swings to one half"
# symptom_check = "ema_unet.decay != 0.995"
# cause = "the momentary value is assigned to self.decay"
# fix = "a local name"
# evidence = [
#     { url = "https://github.com/huggingface/diffusers/issues/1864", title = "EMA model in Stable Diffusion training example is wrong" },
# ]
# ///
import copy

import torch
import torch.nn as nn


class EMAModel:
    def __init__(self, parameters, decay=0.995):
        self.shadow_params = [p.detach().clone() for p in parameters]
        self.decay = decay
        self.optimization_step = 0

    def get_decay(self, optimization_step):
        value = (1 + optimization_step) / (10 + optimization_step)
        return 1 - min(self.decay, value)

    @torch.no_grad()
    def step(self, parameters):
        self.optimization_step += 1
        self.decay = self.get_decay(self.optimization_step)  #- here
#+         rate = self.get_decay(self.optimization_step)
        for s_param, param in zip(self.shadow_params, parameters):
            s_param.sub_(self.decay * (s_param - param))  #- here
#+             s_param.sub_(rate * (s_param - param))

    def copy_to(self, parameters):
        for s_param, param in zip(self.shadow_params, parameters):
            param.data.copy_(s_param)


class TinyUNet(nn.Module):
    def __init__(self, ch=6):
        super().__init__()
        self.down, self.up = nn.Conv1d(1, ch, 3, 2, 1), nn.ConvTranspose1d(ch, 1, 4, 2, 1)
        self.time = nn.Linear(1, ch)

    def forward(self, x, t):
        return self.up(nn.functional.silu(self.down(x) + self.time(t).unsqueeze(-1)))


torch.manual_seed(65)
unet = TinyUNet()
ema_unet = EMAModel(unet.parameters())
optimizer = torch.optim.AdamW(unet.parameters(), lr=2e-3)
for global_step in range(30):
    latents, noise = torch.randn(8, 1, 16), torch.randn(8, 1, 16)
    t = torch.rand(8, 1)
    noisy = (1 - t).sqrt().unsqueeze(-1) * latents + t.sqrt().unsqueeze(-1) * noise
    loss = nn.functional.mse_loss(unet(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema_unet.step(unet.parameters())  #! also
sample_net = copy.deepcopy(unet)
ema_unet.copy_to(sample_net.parameters())
print(loss.item(), ema_unet.decay)
