import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 3)
        self.conv.requires_grad_(False)
        self.bn.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval()
        return self

    def forward(self, x):
        return self.head(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


torch.manual_seed(22)
net = Backbone()
optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for _ in range(3):
        loss = nn.functional.cross_entropy(net(torch.rand(6, 3, 7, 7)), torch.randint(0, 3, (6,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        score = net(torch.rand(6, 3, 7, 7)).argmax(1).float().mean()
print(loss.item(), score.item())
