import torch
from torch import nn

torch.manual_seed(0)


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = conv(c, c)
        self.b = nn.Sequential(nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c))
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.b(self.a(x))
        out += x
        return self.act(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8)
        self.body = nn.Sequential(Bottleneck(8), Bottleneck(8))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = x.mul(2).sub_(1)
        x = self.body(self.stem(x)).mean((-1, -2))
        logits = self.fc(nn.functional.dropout(x, 0.1, self.training, inplace=False))
        logits.div_(0.9)
        return logits


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.05, 0.9)
X, Y = torch.rand(24, 3, 6, 6), torch.randint(0, 5, (24,))
for epoch in range(3):
    for i in range(0, 24, 8):
        out = net(X[i : i + 8])
        loss = nn.functional.cross_entropy(out, Y[i : i + 8])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
