# /// case
# title = "All layers have the norm of the signature"
# category = "identity"
# kind = "shared-default-module"
# kinds_also_ok = ["shared-parameters", "layers-are-one-object"]
# severity = "warning"
# names = ["norm"]
# symptom = "one network's training changes the other"
# symptom_check = "user.units[0].norm is item.units[1].norm and drift > 0"
# cause = "a default argument is made once"
# fix = "make the norm in the constructor"
# ///
import torch
import torch.nn as nn


class ResidualUnit(nn.Module):
    def __init__(self, dim=12, norm=nn.LayerNorm(12)):  #- here
#+     def __init__(self, dim=12, norm=nn.LayerNorm):
        super().__init__()
        self.norm = norm  #- also
#+         self.norm = norm(dim)
        self.ff = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.ff(self.norm(x)).relu()


class Tower(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.units = nn.Sequential(*(ResidualUnit() for _ in range(depth)))
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        return self.out(self.units(x))


torch.manual_seed(48)
user, item = Tower(), Tower()
optimizer = torch.optim.Adagrad(list(user.units.parameters()) + list(user.out.parameters()), lr=0.02)
x = torch.randn(64, 12)
with torch.no_grad():
    frozen = item(x)
for _ in range(10):
    loss = (user(x) - x.mean(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    drift = (item(x) - frozen).abs().max().item()
print(loss.item(), drift)
