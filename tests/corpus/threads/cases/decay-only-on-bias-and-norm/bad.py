import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(10, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 3))
no_decay = ["bias", "1.weight"]


def grouped(model, decay):
    named = list(model.named_parameters())
    return [
        {"params": [p for n, p in named if any(nd in n for nd in no_decay)], "weight_decay": decay},
        {"params": [p for n, p in named if not any(nd in n for nd in no_decay)], "weight_decay": 0.0},
    ]


optimizer = torch.optim.AdamW(grouped(net, 0.1), lr=1e-2)
for _ in range(20):
    x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
print(net[1].weight.mean())
