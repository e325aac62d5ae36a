import io

import torch
import torch.nn as nn


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.randn(r, base.in_features) * 0.05)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scaling = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.lora_A.T @ self.lora_B.T) * self.scaling


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = LoRALinear(nn.Linear(12, 12))
        self.v_proj = LoRALinear(nn.Linear(12, 12))
        self.score = nn.Linear(12, 3)

    def forward(self, x):
        return self.score(torch.tanh(self.q_proj(x)) * self.v_proj(x))


def save_adapter(model):
    buffer = io.BytesIO()
    torch.save({k: v for k, v in model.state_dict().items() if "lora_" in k}, buffer)
    buffer.seek(0)
    return buffer


def from_pretrained(file, is_trainable=False):
    model = Classifier()
    model.load_state_dict(torch.load(file), strict=False)
    for name, param in model.named_parameters():
        if "lora_" in name:
            param.requires_grad = is_trainable
    return model


torch.manual_seed(26)
model = from_pretrained(save_adapter(Classifier()))
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
start = model.v_proj.lora_B.detach().clone()
for step in range(5):
    x, y = torch.randn(16, 12), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
