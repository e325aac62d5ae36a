# /// case
# title = "A coupling layer transforms its second half in place, in the tensor whose first half the network has saved"
# category = "in-place"
# kind = "in-place-write-to-saved-input"
# kinds_also_ok = ["modified-by-inplace-operation", "inplace-on-view", "inplace-update-breaks-backward"]
# severity = "error"
# names = ["x", "Coupling", "half", "log_scale"]
# symptom = "backward raises: a tensor that it needs was modified in place"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "The first linear layer and the product have saved views of x; the assignment into x changes the version of all its views."
# fix = "build the result with torch.cat instead of writing into x"
# ///
import math

import torch
import torch.nn as nn


class Coupling(nn.Module):
    def __init__(self, dim, width=24):
        super().__init__()
        self.half = dim // 2
        self.net = nn.Sequential(nn.Linear(self.half, width), nn.Tanh(), nn.Linear(width, 2 * (dim - self.half)))

    def forward(self, x):
        log_scale, shift = self.net(x[:, : self.half]).chunk(2, dim=1)  #! also
        log_scale = log_scale.tanh()
        x[:, self.half:] = x[:, self.half:] * log_scale.exp() + shift  #- here
        return x, log_scale.sum(1)  #- also
#+         moved = x[:, self.half:] * log_scale.exp() + shift
#+         return torch.cat([x[:, : self.half], moved], dim=1), log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(dim) for _ in range(layers))

    def forward(self, x):
        total = torch.zeros(len(x))
        for coupling in self.couplings:
            x, log_det = coupling(x)
            x, total = x.flip(1), total + log_det
        return x, total

    def log_prob(self, x):
        z, log_det = self(x)
        return -0.5 * (z.square() + math.log(2 * math.pi)).sum(1) + log_det


def sample(count):
    a = torch.randn(count, 2)
    b = torch.stack([a[:, 0] ** 2 - 1, a[:, 1] * a[:, 0]], 1) * 0.5 + 0.2 * torch.randn(count, 2)
    return torch.cat([a, b], 1)


torch.manual_seed(29)
flow = Flow(dim=4, layers=4)
optimizer = torch.optim.Adam(flow.parameters(), lr=4e-3)
for step in range(15):
    loss = -flow.log_prob(sample(128)).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(f"nats {loss.item():.3f}")
