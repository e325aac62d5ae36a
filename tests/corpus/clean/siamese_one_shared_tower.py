import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))

    def forward_once(self, x):
        return self.tower(x)

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, o1, o2, label):
        d = F.pairwise_distance(o1, o2)
        return torch.mean((1 - label) * d.pow(2) + label * torch.clamp(self.margin - d, min=0.0).pow(2))


net, criterion = Siamese(), ContrastiveLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
counter, loss_history = [], []
for epoch in range(3):
    for i in range(5):
        y = torch.randint(0, 2, (16,)).float()
        a = torch.randn(16, 8)
        b = torch.where(y[:, None] == 0, a + 0.1 * torch.randn(16, 8), torch.randn(16, 8))
        optimizer.zero_grad()
        out1, out2 = net(a, b)
        loss = criterion(out1, out2, y)
        loss.backward()
        optimizer.step()
        counter.append(epoch * 5 + i)
        loss_history.append(loss.item())
print(loss_history[-1])
