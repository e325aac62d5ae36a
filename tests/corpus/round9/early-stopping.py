# /// case
# title = "The best weights are remembered as a state_dict that shares the parameters' memory"
# category = "in-place"
# kind = "best-state-aliases-weights"
# kinds_also_ok = ["state-dict-not-copied", "best-weights-not-copied", "checkpoint-aliases-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["best_state", "state_dict"]
# symptom = "the weights that are restored are the last ones, not the best"
# symptom_check = "final > stopper.best + 1e-4"
# cause = "state_dict returns the live tensors, which the optimizer goes on changing in place."
# fix = "clone the values (or copy.deepcopy the state_dict)"
# ///
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class EarlyStopping:
    patience: int = 4
    best: float = float("inf")
    bad_epochs: int = 0
    best_state: dict = field(default_factory=dict)

    def update(self, value, model):
        if value < self.best:
            self.best, self.bad_epochs = value, 0
            self.best_state = {k: v for k, v in model.state_dict().items()}  #- here
#+             self.best_state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def split(count, noise):
    x = torch.randn(count, 20)
    y = (x[:, 0] - x[:, 1] > 0).long()
    flip = torch.rand(count) < noise
    return x, torch.where(flip, 1 - y, y)


@torch.no_grad()
def evaluate(model, x, y):
    was_training = model.training
    model.eval()
    value = F.cross_entropy(model(x), y).item()
    model.train(was_training)
    return value


def train(model, train_set, valid_set, stopper, max_epochs=28, lr=2e-2):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    x, y = train_set
    for epoch in range(max_epochs):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()  #! also
        if stopper.update(evaluate(model, *valid_set), model):
            print(f"stopped after epoch {epoch}")
            break
    model.load_state_dict(stopper.best_state)  #! also


torch.manual_seed(6)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
stopper = EarlyStopping()
valid_set = split(200, noise=0.15)
train(net, split(40, noise=0.15), valid_set, stopper)
final = evaluate(net, *valid_set)
print(f"best {stopper.best:.4f} restored {final:.4f}")
