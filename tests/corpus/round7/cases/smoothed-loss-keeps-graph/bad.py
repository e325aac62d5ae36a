import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience, beta=0.9):
        self.patience, self.beta = patience, beta
        self.smoothed, self.best, self.bad = None, float("inf"), 0

    def __call__(self, value):
        if self.smoothed is None:
            self.smoothed = value
        else:
            self.smoothed = self.beta * self.smoothed + (1 - self.beta) * value
        if self.smoothed < self.best:
            self.best, self.bad = float(self.smoothed), 0
        else:
            self.bad += 1
        return self.bad >= self.patience


torch.manual_seed(24)
teacher = nn.Linear(5, 1)
student = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
stopper = EarlyStopping(patience=10)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
for iteration in range(25):
    x = torch.randn(16, 5)
    with torch.no_grad():
        y = teacher(x)
    loss = nn.functional.mse_loss(student(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if stopper(loss):
        print("stopped at", iteration)
        break
print(stopper.best)
