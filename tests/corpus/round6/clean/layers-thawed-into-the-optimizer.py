import torch
import torch.nn as nn

torch.manual_seed(36)
layers = nn.ModuleList([nn.Linear(9, 9) for _ in range(3)])
head = nn.Linear(9, 2)
layers.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
x = torch.randn(80, 9)
y = (x.prod(1) > 0).long()


def forward(x):
    for layer in layers:
        x = x + layer(x).relu()
    return head(x)


frozen = list(layers)
for epoch in range(6):
    if epoch and epoch % 2 == 0:
        layer = frozen.pop()
        layer.requires_grad_(True)
        opt.add_param_group({"params": layer.parameters(), "lr": 0.01})
    for rows in torch.randperm(80).split(20):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(forward(x[rows]), y[rows])
        loss.backward()
        opt.step()
    print(epoch, len(opt.param_groups), loss.item())
