import torch
from torch import nn

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()


def evaluate(loader):
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct


train_set = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(4)]
valid_set = [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(2)]
for epoch in range(3):
    for x, y in train_set:
        optimizer.zero_grad()
        ce(model(x), y).backward()
        optimizer.step()
    print(epoch, evaluate(valid_set))
