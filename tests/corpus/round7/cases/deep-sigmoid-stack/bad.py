import torch
import torch.nn as nn

DEPTH, WIDTH = 10, 32


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=0.02)
        nn.init.zeros_(module.bias)


def make_network(n_in, n_out):
    layers = [nn.Linear(n_in, WIDTH), nn.Sigmoid()]
    for _ in range(DEPTH - 1):
        layers += [nn.Linear(WIDTH, WIDTH), nn.Sigmoid()]
    layers.append(nn.Linear(WIDTH, n_out))
    return nn.Sequential(*layers).apply(init_weights)


torch.manual_seed(90)
model = make_network(6, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(15):
    x = torch.randn(64, 6)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
