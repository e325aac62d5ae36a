import torch
from torch import nn


class Focal(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma
        self.bce = nn.BCEWithLogitsLoss(reduction="none")

    def forward(self, logits, target):
        ce = self.bce(logits, target)
        p = torch.exp(-ce)
        return (1 - p) ** self.gamma * ce


torch.manual_seed(0)
net, focal = nn.Linear(5, 1), Focal()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(12, 5)
    y = (x[:, :1] > 0).float()
    sgd.zero_grad()
    loss = focal(net(x), y)
    loss.backward()
    sgd.step()
