import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(14, 10), nn.ReLU())
        self.fc = nn.Linear(10, classes)

    def forward(self, x):
        return self.fc(self.features(x))


torch.manual_seed(0)
net = Backbone(classes=100)
net.fc = nn.Linear(10, 4)
nn.init.normal_(net.fc.weight, std=0.01)
nn.init.zeros_(net.fc.bias)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.fc.weight.detach().clone()
for _ in range(5):
    x, y = torch.randn(20, 14), torch.randint(0, 4, (20,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print((net.fc.weight - before).abs().max())
