import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, targets):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * ce * (1 - p_t) ** self.gamma).mean()


X = torch.randn(200, 5)
Y = (X[:, :1] > 1.5).float()
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
prior = 0.07
nn.init.constant_(net[-1].bias, -torch.log(torch.tensor((1 - prior) / prior)).item())
opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
criterion = FocalLoss()
for epoch in range(4):
    perm = torch.randperm(200)
    for i in range(0, 200, 50):
        idx = perm[i : i + 50]
        loss = criterion(net(X[idx]), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        pred = net(X) > 0
    print(epoch, loss.item(), pred.sum().item(), "of", int(Y.sum()))
