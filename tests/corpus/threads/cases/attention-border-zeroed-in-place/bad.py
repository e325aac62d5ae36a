import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Conv2d(4, 1, 3, padding=1)
        self.features = nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x, polish=True):
        att = torch.sigmoid(self.score(x))
        if polish:
            att[:, :, 0, :] = 0
            att[:, :, -1, :] = 0
            att[:, :, :, 0] = 0
            att[:, :, :, -1] = 0
        return (self.features(x) * att).mean((2, 3))


torch.manual_seed(2)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    x, y = torch.randn(2, 4, 12, 12), torch.randn(2, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
