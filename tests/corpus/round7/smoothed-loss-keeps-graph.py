# /// case
# title = "The smoothed loss for early stopping is an average of loss tensors"
# category = "retention"
# kind = "graph-kept-alive"
# kinds_also_ok = ["accumulates-loss-tensor", "retained-graph"]
# severity = "warning"
# names = ["smoothed", "EarlyStopping"]
# symptom = "the smoothed value refers to the graphs of all iterations"
# symptom_check = "stopper.smoothed.grad_fn is not None if torch.is_tensor(stopper.smoothed) else False"
# cause = "the exponential average is taken of tensors with a graph"
# fix = "detach"
# ///
import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience, beta=0.9):
        self.patience, self.beta = patience, beta
        self.smoothed, self.best, self.bad = None, float("inf"), 0

    def __call__(self, value):
        if self.smoothed is None:
            self.smoothed = value  #- also
#+             self.smoothed = value.detach()
        else:
            self.smoothed = self.beta * self.smoothed + (1 - self.beta) * value  #- here
#+             self.smoothed = self.beta * self.smoothed + (1 - self.beta) * value.detach()
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
    if stopper(loss):  #! also
        print("stopped at", iteration)
        break
print(stopper.best)
