# /// case
# title = "The distance of equal embeddings has an infinite derivative"
# category = "numerics"
# kind = "sqrt-at-zero"
# kinds_also_ok = ["nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "distance"]
# symptom = "NaN gradients when both inputs are the same"
# symptom_check = "not torch.isfinite(encoder[0].weight.grad).all()"
# cause = "sqrt has an infinite slope at zero"
# fix = "an epsilon below the root"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/pull/2775", title = "Norm subgradient at 0" },
#     { url = "https://github.com/pytorch/pytorch/issues/2421", title = "Gradient of zero norm is nan" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(66)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, different):
        distance = (a - b).pow(2).sum(1).sqrt()  #- here
#+         distance = ((a - b).pow(2).sum(1) + 1e-8).sqrt()
        together = (1 - different) * distance.pow(2)
        apart = different * (self.margin - distance).clamp(min=0).pow(2)
        return 0.5 * (together + apart).mean()


class SignaturePairs:
    """Pairs of signatures; a writer's reference is sometimes paired with itself."""

    def __init__(self, writers=10, dim=12):
        self.reference = torch.randn(writers, dim)

    def sample(self, n):
        i, j = torch.randint(0, 10, (2, n))
        j[:n // 2] = i[:n // 2]
        a, b = self.reference[i], self.reference[j].clone()
        scanned_again = torch.rand(n, 1) < 0.7
        b = torch.where(scanned_again, b + 0.05 * torch.randn_like(b), b)
        return a, b, (i != j).float()


encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 6, bias=False))
criterion, pairs = ContrastiveLoss(), SignaturePairs()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05)
for step in range(3):
    a, b, different = pairs.sample(40)
    loss = criterion(encoder(a), encoder(b), different)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(step, loss.item())
