import torch
from torch import nn
import torch.nn.functional as F


class VectorScaling(nn.Module):
    """Calibrates the logits of a finished model; nothing of the model itself changes."""

    def __init__(self, classes):
        super().__init__()
        self.log_temperature = nn.Parameter(torch.zeros(()))
        self.offset = nn.Parameter(torch.zeros(classes))

    def forward(self, logits):
        return logits * self.log_temperature.neg().exp() + self.offset


class CalibratedModel(nn.Module):
    def __init__(self, model, classes):
        super().__init__()
        self.model = model
        self.scaling = VectorScaling(classes)

    def forward(self, x):
        with torch.no_grad():
            logits = self.model(x)
        return self.scaling(logits)

    def calibrate(self, x, y, penalty=1e-3):
        self.model.eval()
        with torch.no_grad():
            logits = self.model(x)
        optimizer = torch.optim.LBFGS(self.scaling.parameters(), lr=0.5, max_iter=30, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(self.scaling(logits), y) + penalty * self.scaling.offset.square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure).item()


@torch.no_grad()
def expected_error(logits, y, bins=10):
    confidence, predicted = logits.softmax(1).max(1)
    correct = predicted.eq(y).float()
    which = (confidence * bins).long().clamp(max=bins - 1)
    error = 0.0
    for index in which.unique():
        inside = which == index
        error += inside.float().mean() * (confidence[inside].mean() - correct[inside].mean()).abs()
    return float(error)


def documents(count, topics):
    y = torch.randint(0, len(topics), (count,))
    return topics[y] + 1.5 * torch.randn(count, topics.shape[1]), y


def overfit(x, y, classes, steps=150):
    model = nn.Sequential(nn.Linear(x.shape[1], 96), nn.ReLU(), nn.Dropout(0.05), nn.Linear(96, classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


torch.manual_seed(67)
topics = torch.randn(6, 14)
train, valid, test = documents(300, topics), documents(400, topics), documents(800, topics)
model = CalibratedModel(overfit(*train, classes=6), classes=6)
model.eval()
before = expected_error(model(test[0]), test[1])
start = model.calibrate(*valid)
after = expected_error(model(test[0]), test[1])
print(f"nll before {start:.4f}, temperature {model.scaling.log_temperature.exp().item():.3f}")
print(f"calibration error {before:.4f} -> {after:.4f}")
