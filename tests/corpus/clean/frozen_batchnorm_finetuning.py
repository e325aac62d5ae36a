import torch
from torch import nn

torch.manual_seed(0)


class ResNetish(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(x + self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))

    def train(self, mode=True):
        super().train(mode)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
                m.weight.requires_grad_(False)
                m.bias.requires_grad_(False)
        return self


net = ResNetish()
net.load_state_dict({k: v + 0.0 for k, v in net.state_dict().items()})
net.train()
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1e-2, momentum=0.9)
X, Y = torch.randn(24, 3, 6, 6), torch.randint(0, 2, (24,))
for epoch in range(3):
    net.train()
    for i in torch.randperm(24).split(8):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, loss.item(), (net(X).argmax(1) == Y).float().mean().item())
