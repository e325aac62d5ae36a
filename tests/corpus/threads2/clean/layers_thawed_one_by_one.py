import torch
from torch import nn

torch.manual_seed(20)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(3))
head = nn.Linear(6, 2)
blocks.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)


def forward(x):
    for block in blocks:
        x = x + block(x)
    return head(x)


for epoch in range(4):
    if epoch:
        block = blocks[-epoch]
        block.requires_grad_(True)
        optimizer.add_param_group({"params": block.parameters(), "lr": 1e-3})
    for _ in range(3):
        x = torch.randn(16, 6)
        loss = nn.functional.cross_entropy(forward(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item(), len(optimizer.param_groups))
