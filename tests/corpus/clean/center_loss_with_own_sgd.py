import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class CenterLoss(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(n, d))

    def forward(self, x, y):
        return (x - self.centers[y]).pow(2).sum(1).mean() / 2


features, classifier = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)), nn.Linear(2, 4)
center = CenterLoss(4, 2)
opt_model = torch.optim.SGD([*features.parameters(), *classifier.parameters()], lr=0.05, momentum=0.9)
opt_center = torch.optim.SGD(center.parameters(), lr=0.5)
weight = 0.1
X = torch.randn(64, 6)
Y = X[:, :4].argmax(1)
for epoch in range(4):
    for i in torch.randperm(64).split(16):
        f = features(X[i])
        xent, c = F.cross_entropy(classifier(f), Y[i]), center(f, Y[i])
        loss = xent + weight * c
        opt_model.zero_grad()
        opt_center.zero_grad()
        loss.backward()
        opt_model.step()
        for p in center.parameters():
            p.grad.data *= 1.0 / weight
        opt_center.step()
    print(epoch, xent.item(), c.item())
