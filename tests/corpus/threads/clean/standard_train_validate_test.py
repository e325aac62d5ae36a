import torch
from torch import nn

torch.manual_seed(29)
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)


def run(batches, train):
    net.train(train)
    total = 0.0
    with torch.set_grad_enabled(train):
        for x, y in batches:
            loss = nn.functional.cross_entropy(net(x), y)
            if train:
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
            total += loss.item()
    return total / len(batches)


make = lambda n: [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(n)]
train, valid, test = make(6), make(2), make(2)
for epoch in range(3):
    print(epoch, run(train, True), run(valid, False))
print(run(test, False))
