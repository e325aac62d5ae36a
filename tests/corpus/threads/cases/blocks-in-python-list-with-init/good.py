import torch
import torch.nn as nn


class ResNet(nn.Module):
    def __init__(self, width=12, depth=3):
        super().__init__()
        self.stem = nn.Linear(5, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)
        for block in self.blocks:
            nn.init.kaiming_normal_(block.weight)
            nn.init.zeros_(block.bias)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x)


torch.manual_seed(2)
net = ResNet()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(10):
    x = torch.randn(32, 5)
    loss = (net(x) - x.prod(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
