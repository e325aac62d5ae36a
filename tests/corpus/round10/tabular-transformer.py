# /// case
# title = "The split into decayed and not decayed parameters leaves out the class token and the column codes"
# category = "optimizer"
# kind = "parameters-missing-from-param-groups"
# kinds_also_ok = ["parameters-missing-from-optimizer", "incomplete-param-groups", "weight-decay-split-drops-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rest", "decay", "token", "column"]
# symptom = "the class token, the column codes and the value scales are never updated"
# symptom_check = "sum(p.numel() for g in optimizer.param_groups for p in g['params']) < sum(p.numel() for p in model.parameters())"
# cause = "The conditions of the two lists do not cover names that end neither in weight nor in bias."
# fix = "define the second list as the rest of the first"
# ///
import torch
from torch import nn
from torch.nn import functional as F


class TabTransformer(nn.Module):
    def __init__(self, columns, dim=16, heads=2, classes=2):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, dim))  #! also
        self.column = nn.Parameter(0.02 * torch.randn(columns, dim))  #! also
        self.scale = nn.Parameter(torch.randn(columns, dim) / dim ** 0.5)
        self.norm1 = nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, row):
        cells = row.unsqueeze(-1) * self.scale + self.column
        h = torch.cat([self.token.expand(len(row), -1, -1), cells], 1)
        q = self.norm1(h)
        h = h + self.attend(q, q, q, need_weights=False)[0]
        h = h + self.feed(self.norm2(h))
        return self.head(h[:, 0])


def make_optimizer(model, lr, weight_decay):
    named = list(model.named_parameters())
    decay = [p for n, p in named if n.endswith("weight") and p.ndim > 1]  #! also
    rest = [p for n, p in named if n.endswith("bias") or "norm" in n]  #- here
#+     rest = [p for n, p in named if not (n.endswith("weight") and p.ndim > 1)]
    groups = [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98))


def census(n, columns=6):
    x = torch.randn(n, columns)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long()
    return x, y


torch.manual_seed(33)
x, y = census(384)
model = TabTransformer(columns=6)
optimizer = make_optimizer(model, lr=4e-3, weight_decay=0.01)
losses = []
for epoch in range(8):
    for rows in torch.randperm(len(x)).split(64):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
accuracy = (model(x).argmax(1) == y).float().mean().item()
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {accuracy:.3f}")
