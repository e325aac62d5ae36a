import torch
import torch.nn.functional as F
from torch import nn


class ClipLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, a, b):
        logits = self.logit_scale.exp() * F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t()
        labels = torch.arange(len(a))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


torch.manual_seed(31)
towers = nn.ModuleDict({"image": nn.Linear(12, 8), "text": nn.Linear(9, 8)})
criterion = ClipLoss()
opt = torch.optim.AdamW(towers.parameters(), lr=1e-2)
for step in range(10):
    images, texts = torch.randn(16, 12), torch.randn(16, 9)
    loss = criterion(towers["image"](images), towers["text"](texts))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), criterion.logit_scale.item())
