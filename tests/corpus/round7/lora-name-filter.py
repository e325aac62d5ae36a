# /// case
# title = "The filter for trainable names matches no LoRA parameter"
# category = "flags"
# kind = "freeze-by-name-too-much"
# kinds_also_ok = ["frozen-parameter", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["mark_trainable", "lora", "down", "up"]
# symptom = "the low-rank factors are frozen, only the head is trained"
# symptom_check = 'not any(p.requires_grad for n, p in model.named_parameters() if ".down" in n or ".up" in n)'
# cause = "the parameters are called down and up, the filter looks for lora"
# fix = "match the names"
# ///
import torch
import torch.nn as nn


class LowRankLinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


def inject(model):
    for block in (m for m in list(model.modules()) if isinstance(m, Block)):
        block.fc1, block.fc2 = LowRankLinear(block.fc1), LowRankLinear(block.fc2)


def mark_trainable(model, keys):
    for name, p in model.named_parameters():
        p.requires_grad = any(key in name for key in keys)  #! also


torch.manual_seed(32)
model = nn.Sequential()
model.add_module("blocks", nn.Sequential(Block(12), Block(12)))
model.add_module("head", nn.Linear(12, 3))
inject(model)
mark_trainable(model, keys=("lora", "head"))  #- here
#+ mark_trainable(model, keys=(".down", ".up", "head"))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
x, y = torch.randn(32, 12), torch.randint(0, 3, (32,))
for step in range(10):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), sum(p.numel() for p in model.parameters() if p.requires_grad))
