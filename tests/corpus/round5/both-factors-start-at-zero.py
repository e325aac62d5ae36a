# /// case
# title = "Both low-rank factors are zero"
# category = "scale"
# kind = "zero-initialisation"
# kinds_also_ok = ["zero-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["lora_A", "lora_B", "zeros_"]
# symptom = "the gradients of both factors are zero for ever"
# symptom_check = "all(l.lora_A.abs().max() == 0 and l.lora_B.abs().max() == 0 for l in adapted)"
# cause = "the base model's initialisation runs over the adapters that were added before"
# fix = "add the adapters after it"
# evidence = [
#     { url = "https://github.com/nvidia-cosmos/cosmos-predict2.5/pull/15", title = "fix lora initialization problem. Original method leads lora-A initialization all zeros --> No training" },
#     { url = "https://github.com/Guitaricet/relora/issues/18", title = "Code bugs" },
# ]
# ///
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
                nn.init.zeros_(p.data)  #! also

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
#+ model.init_weights()
adapted = add_lora(model)  #! here
model.init_weights()  #- here
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for step in range(8):
    noise, x = torch.randn(16, 16), torch.randn(16, 16)
    loss = (model(x + noise) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), [layer.lora_B.abs().max().item() for layer in adapted])
