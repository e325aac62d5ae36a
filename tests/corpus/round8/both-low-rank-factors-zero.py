# /// case
# title = "Both factors of a low-rank update are initialised with zeros"
# category = "scale"
# kind = "zero-initialisation"
# kinds_also_ok = ["zero-gradient-at-init", "symmetric-zero-init"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["lora_a", "lora_b", "zeros_"]
# symptom = "both factors' gradients are zero for ever"
# symptom_check = "all(bool((m.lora_a.grad == 0).all()) and bool((m.lora_b.grad == 0).all()) for m in adapted)"
# cause = "The gradient of each factor is proportional to the other, and both are zero."
# fix = "a random start of one of the two"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoraLinear(nn.Module):
    def __init__(self, base, rank=3, alpha=6):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.empty(base.out_features, rank))
        self.scaling = alpha / rank
        self.reset()

    def reset(self):
        nn.init.zeros_(self.lora_a)  #- here
#+         nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        nn.init.zeros_(self.lora_b)  #! here

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_a), self.lora_b)  #! also


def adapt(net, rank):
    found = []
    for index, layer in enumerate(net):
        if isinstance(layer, nn.Linear):
            net[index] = LoraLinear(layer, rank)
            found.append(net[index])
    return found


def pretrain(net, x, y, steps=5):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()


torch.manual_seed(14)
x = torch.randn(64, 8)
net = nn.Sequential(nn.Linear(8, 20), nn.Tanh(), nn.Linear(20, 2))
pretrain(net, x, x[:, :2])
adapted = adapt(net, rank=3)
net.zero_grad()
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        loss = F.mse_loss(net(x[rows]), x[rows, 2:4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
