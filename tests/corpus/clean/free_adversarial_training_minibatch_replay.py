import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
eps, step_size, replays = 0.2, 0.2, 3
noise = torch.zeros(16, 12)
X = torch.randn(64, 12)
Y = (X[:, 0] > X[:, 1]).long()
for epoch in range(2):
    for x, y in zip(X.split(16), Y.split(16)):
        for _ in range(replays):
            noise_batch = noise[: x.size(0)].clone().requires_grad_(True)
            output = model(x + noise_batch)
            loss = criterion(output, y)
            opt.zero_grad()
            loss.backward()
            pert = step_size * torch.sign(noise_batch.grad)
            noise[: x.size(0)] += pert.data
            noise.clamp_(-eps, eps)
            opt.step()
    print(epoch, loss.item())
