# /// case
# title = "Early return skips switching gradients back on"
# category = "train-eval-mode"
# kind = "grad-mode-left-off"
# severity = "error"
# names = ["set_grad_enabled", "evaluate"]
# difficulty = "medium"
# symptom = "RuntimeError in backward: element 0 of tensors does not require grad."
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "evaluate() switches autograd off globally and returns early for a small split before it is switched on again."
# fix = "Use the context manager torch.no_grad()."
# evidence = [{ url = "https://github.com/bethgelab/foolbox/issues/242" }]
# ///
"""Matrix factorisation with periodic evaluation on several user groups."""
import torch
from torch import nn


class Factorisation(nn.Module):
    def __init__(self, users, items, dim=8):
        super().__init__()
        self.u = nn.Embedding(users, dim)
        self.v = nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, u, i):
        return (self.u(u) * self.v(i)).sum(-1) + self.bias


def evaluate(model, split, min_rows=10):
    u, i, r = split
    torch.set_grad_enabled(False)  #- here
    if len(r) < min_rows:  #! here
        return None  #! here
    mse = nn.functional.mse_loss(model(u, i), r).item()  #- also
    torch.set_grad_enabled(True)  #- here
    return mse  #- also
#+     with torch.no_grad():
#+         return nn.functional.mse_loss(model(u, i), r).item()


def ratings(n):
    u, i = torch.randint(0, 40, (n,)), torch.randint(0, 25, (n,))
    return u, i, torch.sin(u / 7.0) * torch.cos(i / 5.0)


torch.manual_seed(0)
model = Factorisation(40, 25)
opt = torch.optim.Adam(model.parameters(), lr=0.05)
groups = {"new": ratings(30), "rare": ratings(6), "old": ratings(50)}
train = ratings(600)
for epoch in range(5):
    for idx in torch.randperm(600).split(100):
        u, i, r = (t[idx] for t in train)
        loss = nn.functional.mse_loss(model(u, i), r)  #! also
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()
    scores = {name: evaluate(model, split) for name, split in groups.items() if name != "old" or epoch % 2}  #! also
print(scores)
