# /// case
# title = "The low-rank adapters are put in after the optimizer has been built"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["optimizer-built-too-early", "parameters-added-after-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "add_adapters"]
# symptom = "the adapters get gradients and never move"
# symptom_check = "all(bool((m.up == 0).all()) for m in net.modules() if isinstance(m, Adapted))"
# cause = "The optimizer is created from the bare network, and the adapters that add_adapters puts in later are in none of its groups."
# fix = "build the optimizer after add_adapters"
# ///
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base: nn.Linear, rank: int = 2, alpha: float = 4.0):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * (x @ self.down.T @ self.up.T)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        weights = (self.query(x) @ x.transpose(1, 2) / x.shape[-1] ** 0.5).softmax(-1)
        return self.head(self.norm(x + weights @ self.value(x)).mean(1))


def add_adapters(model, names):
    for name in names:
        layer = getattr(model, name)
        layer.requires_grad_(False)
        setattr(model, name, Adapted(layer))
    return model


torch.manual_seed(5)
net = Block(12)
#+ net = add_adapters(net, ["query", "value"])
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)  #! here
net = add_adapters(net, ["query", "value"])  #- here
data = torch.randn(48, 6, 12)
labels = torch.randint(0, 4, (48,))
for epoch in range(3):
    for rows in torch.randperm(48).split(16):
        loss = nn.functional.cross_entropy(net(data[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #! also
    print(f"epoch {epoch} loss {loss.item():.3f}")
