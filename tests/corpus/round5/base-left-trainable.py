# /// case
# title = "The base weights train along with the adapters"
# category = "flags"
# kind = "base-not-frozen"
# kinds_also_ok = ["backbone-not-frozen"]
# severity = "warning"
# names = ["requires_grad_", "parameters", "unet"]
# symptom = "the whole network changes, though only adapters are saved"
# symptom_check = "not torch.equal(before, unet.mid.base.weight)"
# cause = "nothing froze the base, and the optimizer has all parameters"
# fix = "requires_grad_(False) on the base"
# evidence = [
#     { url = "https://github.com/huggingface/diffusers/pull/2245", title = "[LoRA] Freezing the model weights" },
#     { url = "https://github.com/huggingface/diffusers/pull/4687", title = "Assert unet frozen in LoRA" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRACompatible(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.base, self.lora = nn.Linear(i, o), None

    def set_lora_layer(self, rank):
        down, up = nn.Linear(self.base.in_features, rank, bias=False), nn.Linear(rank, self.base.out_features, bias=False)
        nn.init.normal_(down.weight, std=1 / rank)
        nn.init.zeros_(up.weight)
        self.lora = nn.Sequential(down, up)

    def forward(self, x):
        return self.base(x) if self.lora is None else self.base(x) + self.lora(x)


class UNet(nn.Module):
    def __init__(self, dim=16, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, dim)
        self.inp, self.mid, self.out = LoRACompatible(dim, 32), LoRACompatible(32, 32), LoRACompatible(32, dim)

    def forward(self, x, t):
        h = F.silu(self.inp(x + self.time(t)))
        return self.out(F.silu(self.mid(h)) + h)


torch.manual_seed(74)
unet = UNet()
#+ unet.requires_grad_(False)
for layer in (unet.inp, unet.mid, unet.out):
    layer.set_lora_layer(rank=4)
before = unet.mid.base.weight.detach().clone()
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3, weight_decay=1e-2)  #- here
#+ optimizer = torch.optim.AdamW([p for p in unet.parameters() if p.requires_grad], lr=1e-3, weight_decay=1e-2)
alphas_cumprod = (1 - torch.linspace(1e-3, 0.1, 50)).cumprod(0)
for step in range(8):
    latents, noise, t = torch.randn(12, 16), torch.randn(12, 16), torch.randint(0, 50, (12,))
    a = alphas_cumprod[t][:, None]
    noisy = a.sqrt() * latents + (1 - a).sqrt() * noise
    loss = F.mse_loss(unet(noisy, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
lora_state = {k: v for k, v in unet.state_dict().items() if "lora" in k}
print(loss.item(), len(lora_state))
