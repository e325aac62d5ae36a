# /// case
# title = "Adapters loaded for a second run keep the flags of inference"
# category = "flags"
# kind = "parameters-left-frozen"
# kinds_also_ok = ["all-parameters-frozen", "parameters-not-in-optimizer", "input-missing-requires-grad"]
# severity = "warning"
# names = ["requires_grad", "is_trainable", "lora"]
# symptom = "only the classifier head trains"
# symptom_check = "torch.equal(start, model.v_proj.lora_B)"
# cause = "is_trainable is left at False"
# fix = "is_trainable=True"
# evidence = [
#     { url = "https://github.com/tloen/alpaca-lora/issues/352", title = "trainable params: 0" },
# ]
# ///
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


def from_pretrained(file, is_trainable=False):  #! also
    model = Classifier()
    model.load_state_dict(torch.load(file), strict=False)
    for name, param in model.named_parameters():
        if "lora_" in name:
            param.requires_grad = is_trainable  #! also
    return model


torch.manual_seed(26)
model = from_pretrained(save_adapter(Classifier()))  #- here
#+ model = from_pretrained(save_adapter(Classifier()), is_trainable=True)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)  #! also
start = model.v_proj.lora_B.detach().clone()
for step in range(5):
    x, y = torch.randn(16, 12), torch.randint(0, 3, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
