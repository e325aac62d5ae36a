import torch
from torch import nn

torch.manual_seed(2)
net = nn.Linear(10, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
log = {"loss": 0.0, "accuracy": 0.0, "penalty": 0.0}
for step in range(12):
    x = torch.randn(24, 10)
    y = x[:, :4].argmax(1)
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, y)
    accuracy = (logits.argmax(1) == y).float().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    log["loss"] += loss.item()
    log["accuracy"] += accuracy.item()
    log["penalty"] += net.weight.abs().sum().item()
print({k: v / 12 for k, v in log.items()})
