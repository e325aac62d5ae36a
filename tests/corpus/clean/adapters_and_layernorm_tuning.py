import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Adapter(nn.Module):
    def __init__(self, d, bottleneck=4):
        super().__init__()
        self.down, self.up = nn.Linear(d, bottleneck), nn.Linear(bottleneck, d)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.adapter = nn.Identity()

    def forward(self, x):
        return x + self.adapter(self.ff(self.norm(x)))


class Model(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.embed = nn.Embedding(30, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(2))
        self.classifier = nn.Linear(d, 2)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x)
        return self.classifier(x.mean(1))


model = Model()
state = {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(state)
for b in model.blocks:
    b.adapter = Adapter(16)
for name, p in model.named_parameters():
    p.requires_grad = any(k in name for k in ("adapter", "norm", "classifier"))
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 4))
ids = torch.randint(0, 30, (32, 6))
labels = (ids[:, 0] > 14).long()
for epoch in range(3):
    model.train()
    for i in range(0, 32, 8):
        logits = model(ids[i : i + 8])
        loss = F.cross_entropy(logits, labels[i : i + 8])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(epoch, loss.item(), scheduler.get_last_lr()[0])
