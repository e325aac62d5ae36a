import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
X = torch.randn(120, 6)
Y = (X[:, 0] > 1).long()
counts = torch.bincount(Y).float()
sampler = WeightedRandomSampler((1 / counts)[Y], num_samples=96, replacement=True)
train = DataLoader(TensorDataset(X, Y), batch_size=16, sampler=sampler)
val = DataLoader(TensorDataset(X, Y), batch_size=40)
net = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(), nn.Linear(12, 2))
criterion = nn.CrossEntropyLoss(weight=(counts.sum() / (2 * counts)).sqrt())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-5)
for epoch in range(3):
    net.train()
    loss_sum, n = 0.0, 0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        loss_sum, n = loss_sum + loss.item() * x.size(0), n + x.size(0)
    net.eval()
    conf = torch.zeros(2, 2, dtype=torch.long)
    with torch.no_grad():
        for x, y in val:
            for t, p in zip(y, net(x).argmax(1)):
                conf[t, p] += 1
    recall = conf.diag().float() / conf.sum(1)
    print(epoch, loss_sum / n, recall.tolist())
