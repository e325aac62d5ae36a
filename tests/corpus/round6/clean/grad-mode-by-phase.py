import torch
import torch.nn as nn


def run(model, data, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total = 0.0
    with torch.set_grad_enabled(training):
        for x, y in data:
            loss = nn.functional.cross_entropy(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
    return total


torch.manual_seed(19)
x = torch.randn(100, 4)
y = (x[:, 0] > x[:, 1]).long()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
train, val = [(x[i:i + 20], y[i:i + 20]) for i in range(0, 80, 20)], [(x[80:], y[80:])]
best = float("inf")
for epoch in range(5):
    run(model, train, opt)
    score = run(model, val)
    if score < best:
        best, kept = score, {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(kept)
print(best, run(model, val))
