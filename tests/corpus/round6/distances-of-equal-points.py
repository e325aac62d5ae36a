# /// case
# title = "sqrt at zero"
# category = "numerics"
# kind = "nan-gradient-sqrt"
# kinds_also_ok = ["nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "pairwise"]
# symptom = "all weights are NaN after the first step"
# symptom_check = "embed[0].weight.isnan().any().item()"
# cause = "the diagonal is zero, and the derivative of sqrt is infinite there"
# fix = "a small number within the root"
# ///
import torch
import torch.nn as nn


def pairwise(z):
    sq = (z[:, None] - z[None]).pow(2).sum(-1)  #! also
    return torch.sqrt(sq)  #- here
#+     return torch.sqrt(sq + 1e-12)


class BatchHard(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.margin = margin

    def forward(self, z, label):
        d = pairwise(z)  #! also
        same = label[:, None] == label
        far = (d * same).amax(1)
        near = d.masked_fill(same, float("inf")).amin(1)
        return (far - near + self.margin).relu().mean()


torch.manual_seed(57)
embed = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = BatchHard()
optimizer = torch.optim.Adam(embed.parameters(), lr=1e-3)
x = torch.randn(48, 8)
label = torch.arange(48) % 6
for step in range(3):
    loss = criterion(embed(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
