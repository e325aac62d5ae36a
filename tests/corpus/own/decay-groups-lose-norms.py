# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["optimizer", "norm"]
# ///
#-
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


def configure(model, decay):
    with_decay, without = [], []
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):  #-
            without.append(parameter)  #-
        elif parameter.ndim >= 2:  #-
            with_decay.append(parameter)  #-
#+         (with_decay if parameter.ndim >= 2 else without).append(parameter)
    groups = [{"params": with_decay, "weight_decay": decay}, {"params": without, "weight_decay": 0.0}]  #! also
    return torch.optim.AdamW(groups, lr=1e-3)  #! here


torch.manual_seed(0)
model = nn.Sequential(Block(6), Block(6), nn.Linear(6, 4))
optimizer = configure(model, 0.01)
for _ in range(4):
    tokens = torch.randn(3, 5, 6)
    loss = nn.functional.cross_entropy(model(tokens).reshape(-1, 4), torch.randint(0, 4, (15,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
