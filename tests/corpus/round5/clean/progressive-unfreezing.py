import torch
from torch import nn

torch.manual_seed(55)
layers = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)])
layers[:2].requires_grad_(False)
optimizer = torch.optim.SGD(layers[2].parameters(), lr=0.05, momentum=0.9)


def net(x):
    for layer in layers[:-1]:
        x = torch.relu(layer(x))
    return layers[-1](x)


for epoch in range(6):
    if epoch in (2, 4):
        layer = layers[2 - epoch // 2]
        layer.requires_grad_(True)
        optimizer.add_param_group({"params": list(layer.parameters()), "lr": 0.01})
    for _ in range(5):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), len(optimizer.param_groups))
