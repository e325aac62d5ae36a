import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.RNN(8, 16, batch_first=True)
head = nn.Linear(16, 1)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.01)
total = 0

for step in range(40):
    x = torch.randn(4, 5, 8)
    feats, hidden = rnn(x)
    loss = head(feats[:, -1]).pow(2).mean()
    total += loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
