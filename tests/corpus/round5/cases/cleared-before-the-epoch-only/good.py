import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(77)
x = torch.randn(160, 9)
y = (x[:, 0] - x[:, 3] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32)

net = nn.Sequential(nn.Linear(9, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def correlation_penalty(h, labels):
    """Features should not vary within a class."""
    return sum(h[labels == c].var(0).mean() for c in (0, 1))


def train(epoch):
    net.train()
    train_loss, correct = 0.0, 0
    for batch_idx, (inputs, targets) in enumerate(loader):
        h = net[:3](inputs)
        outputs = net[3](h)
        loss = criterion(outputs, targets) + 0.05 * correlation_penalty(h, targets)
        own = torch.autograd.grad(loss, net[3].weight, retain_graph=True)[0]
        optimizer.zero_grad()
        loss.backward()
        stepped = net[3].weight.grad.clone()
        optimizer.step()
        train_loss += loss.item()
        correct += (outputs.argmax(1) == targets).sum().item()
    print(epoch, train_loss / len(loader), correct / len(x))
    return own, stepped


for epoch in range(3):
    own, stepped = train(epoch)
