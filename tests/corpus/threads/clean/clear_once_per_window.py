import torch
from torch import nn

torch.manual_seed(12)
net = nn.Linear(7, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = [(torch.randn(8, 7), torch.randint(0, 3, (8,))) for _ in range(12)]
window = 4
for epoch in range(2):
    for start in range(0, len(loader), window):
        opt.zero_grad()
        for x, y in loader[start : start + window]:
            (nn.functional.cross_entropy(net(x), y) / window).backward()
        opt.step()
    print(epoch)
