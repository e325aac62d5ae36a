import torch
import torch.nn as nn
import torch.nn.functional as F


class HardSelector(nn.Module):
    def __init__(self, features, picks):
        super().__init__()
        self.logits = nn.Parameter(0.01 * torch.randn(picks, features))

    def forward(self, x, temperature):
        if self.training:
            noise = -torch.empty_like(self.logits).exponential_().log()
            soft = ((self.logits + noise) / temperature).softmax(-1)
        else:
            soft = self.logits.softmax(-1)
        hard = F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft)
        choice = hard + soft - soft.detach()
        return x @ choice.T


class SelectThenClassify(nn.Module):
    def __init__(self, features=10, picks=3, classes=2):
        super().__init__()
        self.select = HardSelector(features, picks)
        self.net = nn.Sequential(nn.Linear(picks, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x, temperature=1.0):
        return self.net(self.select(x, temperature))


def anneal(step, steps, start=2.0, end=0.5):
    return start * (end / start) ** (step / (steps - 1))


def main(steps=30):
    torch.manual_seed(3)
    model = SelectThenClassify()
    optimizer = torch.optim.Adam([
        {"params": model.select.parameters(), "lr": 5e-2},
        {"params": model.net.parameters(), "lr": 1e-2},
    ])
    for step in range(steps):
        x = torch.randn(128, 10)
        y = (x[:, 2] * 2 - x[:, 6] > 0).long()
        loss = F.cross_entropy(model(x, anneal(step, steps)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"loss {loss.item():.3f} accuracy {accuracy:.2f} picks {model.select.logits.argmax(1).tolist()}")


main()
