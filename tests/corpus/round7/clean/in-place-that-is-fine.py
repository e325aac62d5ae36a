import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.fc = nn.Conv2d(1, 6, 3, padding=1), BasicBlock(6), nn.Linear(6, 2)

    def forward(self, x):
        h = self.block(self.stem(x))
        pooled = torch.empty(len(x), 6)
        pooled[:, :3] = h[:, :3].amax(dim=(2, 3))
        pooled[:, 3:] = h[:, 3:].mean(dim=(2, 3))
        return self.fc(pooled.mul_(0.5))


torch.manual_seed(129)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(8):
    x = torch.rand(12, 1, 8, 8)
    y = (x.mean(dim=(1, 2, 3)) > 0.5).long()
    x[torch.rand_like(x) < 0.1] = 0.0
    x.sub_(0.5).div_(0.3)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
