import torch
import torch.nn as nn

torch.manual_seed(16)
body = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
head = nn.Linear(24, 2)
x = torch.randn(120, 8)
y = (x[:, 0] + x[:, 1] > 0).long()


def phase(lr, epochs):
    model = nn.Sequential(body, head)
    opt = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(120).split(40):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            opt.step()
    return loss.item()


body.requires_grad_(False)
print(phase(1e-2, 3))
body.requires_grad_(True)
print(phase(1e-3, 3))
