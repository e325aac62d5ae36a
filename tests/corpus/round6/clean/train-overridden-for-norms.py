import torch
import torch.nn as nn


class FrozenBackbone(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone.requires_grad_(False), head
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


torch.manual_seed(23)
backbone = nn.Sequential(nn.Linear(7, 20), nn.BatchNorm1d(20), nn.ReLU())
model = FrozenBackbone(backbone, nn.Sequential(nn.Dropout(0.1), nn.Linear(20, 4)))
opt = torch.optim.AdamW(model.head.parameters(), lr=1e-2)
x = torch.randn(60, 7) + 1
y = torch.randint(0, 4, (60,))
for epoch in range(5):
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), backbone[1].running_mean.abs().max().item())
