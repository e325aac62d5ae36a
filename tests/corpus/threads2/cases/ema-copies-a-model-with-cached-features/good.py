from copy import deepcopy

import torch
import torch.nn as nn


class AttentionHead(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.query = nn.Conv2d(ch, ch, 1)
        self.last_feature = None

    def forward(self, x):
        attn = torch.sigmoid(self.query(x))
        self.last_feature = attn.detach()
        return x * attn


class Yolo(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2)
        self.attn = AttentionHead(8)
        self.detect = nn.Conv2d(8, 5, 1)
        self.stride = 16 // self(torch.zeros(1, 3, 16, 16)).shape[-1]

    def forward(self, x):
        return self.detect(self.attn(torch.relu(self.stem(x))))


class ModelEMA:
    def __init__(self, model, decay=0.99):
        self.ema = deepcopy(model).eval()
        self.decay = decay
        for p in self.ema.parameters():
            p.requires_grad_(False)

    def update(self, model):
        with torch.no_grad():
            for e, p in zip(self.ema.state_dict().values(), model.state_dict().values()):
                e.mul_(self.decay).add_(p, alpha=1 - self.decay)


torch.manual_seed(20)
model = Yolo()
ema = ModelEMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    loss = model(torch.rand(2, 3, 16, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
print(loss.item())
