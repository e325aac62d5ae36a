import torch
import torch.nn as nn


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        linear = nn.Linear(i, o)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Softplus())


torch.manual_seed(49)
net = mlp(5, 24, 24, 1)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for region in range(6):
    features, built = torch.rand(4, 30, 5), (torch.rand(4, 30, 1) < 0.4).float()
    people = (net(features) * built).sum((1, 2))
    loss = nn.functional.l1_loss(people.add(1).log(), torch.rand(4).mul(50).add(1).log())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
