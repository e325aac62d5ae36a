import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def train_epoch(loader):
    model.train()
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


loader = [(torch.randn(16, 7), torch.randint(0, 2, (16,))) for _ in range(6)]
for epoch in range(4):
    print(epoch, train_epoch(loader))
