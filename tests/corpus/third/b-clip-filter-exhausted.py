# /// case
# title = "Clipping gets a filter object that the optimizer has used up"
# category = "gradient-clipping"
# kind = "clip-without-effect"
# severity = "warning"
# names = ["trainable", "clip_grad_norm_"]
# difficulty = "hard"
# symptom = "The returned total norm is always 0 and gradients are not clipped; no message."
# symptom_check = "all(n == 0 for n in norms)"
# cause = "filter(...) is an iterator; AdamW consumes it, clip_grad_norm_ then receives an empty one."
# fix = "Make a list of the trainable parameters."
# evidence = [{ url = "https://github.com/PixArt-alpha/PixArt-alpha/pull/160" }, { url = "https://github.com/pytorch/pytorch/issues/148259" }, { url = "https://github.com/pytorch/torchtitan/pull/1258" }]
# ///
"""LoRA fine-tuning of a frozen regressor."""
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.T) @ self.lora_b.T


def inject(module, rank):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child, rank))
        else:
            inject(child, rank)
    return module


torch.manual_seed(0)
pretrained = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))
model = inject(pretrained, rank=4)
trainable = filter(lambda p: p.requires_grad, model.parameters())  #- here
#+ trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=5e-3)  #! here
x = torch.randn(256, 16)
teacher = torch.randn(16, 4)
norms = []
for step in range(30):
    idx = torch.randint(0, 256, (64,))
    loss = nn.functional.mse_loss(model(x[idx]), x[idx] @ teacher)
    optimizer.zero_grad()
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(trainable, max_norm=1.0).item())  #! here
    optimizer.step()
print("loss", loss.item(), "norm before clipping", norms[-1])
