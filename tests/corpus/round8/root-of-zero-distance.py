# /// case
# title = "Pairwise distances are square roots, and those of the diagonal are of zero"
# category = "numerics"
# kind = "sqrt-at-zero"
# kinds_also_ok = ["nan-gradient", "infinite-derivative"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["sqrt", "distance", "pairwise"]
# symptom = "the parameters become nan in the first step"
# symptom_check = "all(bool(torch.isnan(p).any()) for p in encoder.parameters())"
# cause = "The derivative of the root is infinite at zero, and the mask of the diagonal gives zero times infinity."
# fix = "a small number under the root"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/how-to-fix-gradient-at-0-for-sqrt-function/23390", title = "How to fix gradient at 0 for sqrt function" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(41)
MARGIN = 1.0


def pairwise(z):
    difference = z[:, None, :] - z[None, :, :]
    return torch.sqrt(difference.square().sum(-1))  #- here
#+     return torch.sqrt(difference.square().sum(-1) + 1e-8)


def contrastive_loss(z, label):
    distance = pairwise(z)
    same = (label[:, None] == label[None, :]).float()
    off_diagonal = 1 - torch.eye(len(z))  #! also
    pull = same * distance.square()
    push = (1 - same) * (MARGIN - distance).clamp(min=0).square()
    return ((pull + push) * off_diagonal).sum() / off_diagonal.sum()  #! also


class SiameseEncoder(nn.Module):
    def __init__(self, fields=15, width=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(fields, 32), nn.ReLU(), nn.Linear(32, width))

    def forward(self, x):
        return self.layers(x)


def signatures(n, writers=5):
    writer = torch.randint(0, writers, (n,))
    return prototypes[writer] + 0.3 * torch.randn(n, 15), writer


prototypes = torch.randn(5, 15)
encoder = SiameseEncoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for step in range(10):
    x, writer = signatures(20)
    loss = contrastive_loss(encoder(x), writer)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(f"{step:2d} {loss.item():.4f}")
