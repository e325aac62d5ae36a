import torch
from torch import nn

torch.manual_seed(16)
enc, dec = nn.Linear(9, 4), nn.Linear(4, 9)
first = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = torch.randn(64, 9)
for _ in range(8):
    first.zero_grad()
    (dec(enc(x).tanh()) - x).pow(2).mean().backward()
    first.step()

head = nn.Linear(4, 2)
second = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.05)
y = (x[:, 0] > 0).long()
for _ in range(8):
    second.zero_grad()
    nn.functional.cross_entropy(head(enc(x).tanh()), y).backward()
    second.step()
print(y.sum().item())
