import math

import torch
import torch.nn as nn


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


class DiT(nn.Module):
    def __init__(self, dim=16, depth=2):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.final = nn.Linear(dim, dim)

    def init_weights(self):
        for name, p in self.named_parameters():
            if "base" in name or "blocks" in name and p.ndim > 1 and "lora" not in name:
                nn.init.xavier_uniform_(p.data) if p.ndim > 1 else nn.init.zeros_(p.data)
            elif name.startswith("blocks"):
                nn.init.zeros_(p.data)

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.final(x)


def add_lora(model):
    for i, block in enumerate(model.blocks):
        model.blocks[i] = LoRALinear(block)
    model.final.requires_grad_(False)
    return list(model.blocks)


torch.manual_seed(24)
model = DiT()
adapted = add_lora(model)
model.init_weights()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for step in range(8):
    noise, x = torch.randn(16, 16), torch.randn(16, 16)
    loss = (model(x + noise) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), [layer.lora_B.abs().max().item() for layer in adapted])
