# /// case
# title = "Learnable centres of the loss are not in the optimizer"
# category = "optimizer-wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# severity_by_writer = "error"
# names = ["criterion", "centers"]
# difficulty = "easy"
# symptom = "Loss falls through the network only; the centres stay at their random start."
# symptom_check = "torch.equal(first, criterion.centers)"
# cause = "CenterLoss owns the parameter `centers`; the optimizer is built from model.parameters() alone."
# fix = "Add criterion.parameters() to the optimizer."
# evidence = [{ url = "https://github.com/KaiyangZhou/pytorch-center-loss/issues/22" }, { url = "https://github.com/jxgu1016/MNIST_center_loss_pytorch/issues/21" }]
# ///
"""Metric learning: softmax plus centre loss."""
import itertools
import torch
import torch.nn.functional as F
from torch import nn


class CenterLoss(nn.Module):
    def __init__(self, classes, dim, weight=0.1):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, dim))  #! here
        self.weight = weight

    def forward(self, features, labels):
        diff = features - self.centers[labels]
        return self.weight * diff.pow(2).sum(1).mean()


class Embedder(nn.Module):
    def __init__(self, n_in=8, dim=4, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim))
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        f = self.body(x)
        return f, self.fc(f)


torch.manual_seed(8)
prototypes = torch.randn(5, 8) * 1.5
model = Embedder()
criterion = CenterLoss(classes=5, dim=4)  #! here
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  #- here
#+ optimizer = torch.optim.Adam(itertools.chain(model.parameters(), criterion.parameters()), lr=5e-3)
first = criterion.centers.detach().clone()

for it in range(60):
    labels = torch.randint(0, 5, (64,))
    x = prototypes[labels] + 0.3 * torch.randn(64, 8)
    features, logits = model(x)
    loss = F.cross_entropy(logits, labels) + criterion(features, labels)
    optimizer.zero_grad()
    criterion.zero_grad()
    loss.backward()
    optimizer.step()  #! also
print("loss", loss.item())
