import copy

import torch
from torch import nn

torch.manual_seed(0)


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best, self.counter, self.state, self.stop = None, 0, None, False

    def __call__(self, val_loss, model):
        if self.best is None or val_loss < self.best - self.delta:
            self.best, self.counter = val_loss, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience


model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
X, y = torch.randn(40, 20), torch.randn(40, 1)
stopper = EarlyStopping()
history = {"train": [], "val": []}
for epoch in range(30):
    model.train()
    opt.zero_grad()
    train_loss = nn.functional.mse_loss(model(X[:25]), y[:25])
    train_loss.backward()
    opt.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(X[25:]), y[25:]).item()
    history["train"].append(train_loss.item())
    history["val"].append(val_loss)
    stopper(val_loss, model)
    if stopper.stop:
        print("stopped at", epoch)
        break
model.load_state_dict(stopper.state)
model.eval()
with torch.no_grad():
    print(stopper.best, nn.functional.mse_loss(model(X[25:]), y[25:]).item())
