# /// case
# title = "Both factors of the adapter start at zero"
# category = "vanishing-exploding"
# kind = "zero-init-no-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["down", "up", "adapter"]
# difficulty = "medium"
# symptom = "Fine-tuning has no effect: the adapter's gradients are exactly zero at every step."
# symptom_check = "losses[0] == losses[-1]"
# cause = "reset zeroes `down` and `up`; the gradient of each factor is proportional to the other one, so both stay zero."
# fix = "Initialise `down` randomly and only `up` with zeros."
# evidence = [{ url = "https://github.com/Guitaricet/relora/issues/18" }, { url = "https://github.com/NovaSky-AI/SkyRL/pull/852" }, { url = "https://github.com/nvidia-cosmos/cosmos-predict2.5/pull/15" }]
# ///
"""Adapter tuning of a frozen sequence model."""
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, dim, rank):
        super().__init__()
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim, bias=False)
        self.reset()

    def reset(self):
        nn.init.zeros_(self.down.weight)  #- here
#+         nn.init.kaiming_uniform_(self.down.weight, a=5**0.5)
        nn.init.zeros_(self.up.weight)  #! here

    def forward(self, h):
        return h + self.up(self.down(h))  #! here


class AdaptedBlock(nn.Module):
    def __init__(self, block, dim, rank):
        super().__init__()
        self.block = block
        self.adapter = Adapter(dim, rank)

    def forward(self, x):
        return self.adapter(self.block(x))


class Backbone(nn.Module):
    def __init__(self, dim=16, depth=3):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(dim, dim), nn.Tanh()) for _ in range(depth))
        self.readout = nn.Linear(dim, 1)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.readout(x)


def add_adapters(model, dim, rank):
    model.requires_grad_(False)
    for i, block in enumerate(model.blocks):
        model.blocks[i] = AdaptedBlock(block, dim, rank)
    return [p for n, p in model.named_parameters() if "adapter" in n]


torch.manual_seed(0)
model = Backbone()
params = add_adapters(model, 16, 4)  #! also
opt = torch.optim.AdamW(params, lr=1e-2, weight_decay=0.0)
x = torch.randn(200, 16)
y = torch.sin(x[:, :1]) + 0.5 * x[:, 1:2]
losses = []
for epoch in range(25):
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
    losses.append(loss.item())
print(losses[0], losses[-1])
