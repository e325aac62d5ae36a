import torch
import torch.nn as nn


class ScaleNet(nn.Module):
    """People for each built-up pixel."""

    def __init__(self, channels=5, hidden=12):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.ReLU(), nn.Conv2d(hidden, 1, 1))
        with torch.no_grad():
            self.net[2].weight.abs_().neg_()
            self.net[2].bias.fill_(-0.1)
        self.out = nn.Softplus()

    def forward(self, features):
        return self.out(self.net(features))


class PixelTransform:
    def __init__(self, lr=1e-3, optim="adamw"):
        self.model = ScaleNet()
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        self.optimizer = kinds[optim](self.model.parameters(), lr=lr, weight_decay=0.0)

    def step(self, features, buildings, census):
        people = self.model(features) * buildings
        totals = people.sum((1, 2, 3))
        loss = nn.functional.l1_loss(totals.clamp_min(1).log(), census.log()) + 1e-3 * (totals - census).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(101)
job = PixelTransform()
first = job.model.net[0].weight.detach().clone()
history = []
for region in range(8):
    features = torch.rand(4, 5, 6, 6)
    buildings = (torch.rand(4, 1, 6, 6) < 0.4).float()
    history.append(job.step(features, buildings, torch.rand(4) * 90 + 10))
print(history)
