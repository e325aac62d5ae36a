import torch
from torch import nn

torch.manual_seed(7)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
batches = [(torch.randn(16, 6), torch.randn(16, 1)) for _ in range(15)]


def train_one_epoch():
    total = 0.0
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(batches)


for epoch in range(4):
    print(epoch, train_one_epoch(), optimizer.param_groups[0]["lr"])
