# /// case
# title = "Linear layers are initialised with a standard deviation of one"
# category = "scale"
# kind = "initialisation-too-large"
# kinds_also_ok = ["exploding-gradients", "exploding-activations", "normal-init-without-std"]
# severity = "warning"
# names = ["init_weights", "nn.init.normal_"]
# symptom = "logits of several thousands and gradient norms of several thousands"
# symptom_check = "norms[0] > 1000"
# cause = "normal_ draws with std=1 whatever the fan-in, so every layer multiplies the scale by about sqrt(width / 2)."
# fix = "kaiming_normal_"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class TabularConfig:
    cardinalities: tuple = (7, 12, 4)
    embed: int = 6
    numeric: int = 5
    width: int = 64
    depth: int = 5
    lr: float = 1e-3
    steps: int = 25


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight)  #- here
#+         nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        nn.init.zeros_(module.bias)


class TabularNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(n, cfg.embed) for n in cfg.cardinalities)
        size = cfg.embed * len(cfg.cardinalities) + cfg.numeric
        layers = []
        for _ in range(cfg.depth):
            layers += [nn.Linear(size, cfg.width), nn.ReLU()]  #! also
            size = cfg.width
        self.mlp = nn.Sequential(*layers, nn.Linear(size, 1))
        self.apply(init_weights)  #! also

    def forward(self, categories, numbers):
        parts = [table(column) for table, column in zip(self.embeddings, categories.unbind(1))]
        return self.mlp(torch.cat([*parts, numbers], 1)).squeeze(1)


def rows(cfg, count):
    categories = torch.stack([torch.randint(0, n, (count,)) for n in cfg.cardinalities], 1)
    numbers = torch.randn(count, cfg.numeric)
    return categories, numbers, ((numbers[:, 0] + (categories[:, 0] > 3).float()) > 0.5).float()


torch.manual_seed(29)
cfg = TabularConfig()
model = TabularNet(cfg)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
norms = []
for step in range(cfg.steps):
    categories, numbers, clicked = rows(cfg, 128)
    loss = criterion(model(categories, numbers), clicked)  #! also
    optimizer.zero_grad()
    loss.backward()  #! also
    norms.append(nn.utils.get_total_norm(p.grad for p in model.parameters()).item())
    optimizer.step()
    if step % 6 == 0:
        print(f"{step} loss {loss.item():.4g} gradient norm {norms[-1]:.4g}")
