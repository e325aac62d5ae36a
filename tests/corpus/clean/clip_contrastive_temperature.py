import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(48, 16))
        self.text = nn.EmbeddingBag(50, 16)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=-1)
        b = F.normalize(self.text(text), dim=-1)
        return self.scale.exp() * a @ b.t()


model = Towers()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(6):
    logits = model(torch.randn(16, 3, 4, 4), torch.randint(0, 50, (16, 7)))
    labels = torch.arange(len(logits))
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        model.scale.clamp_(0, math.log(100))
print(loss.item())
