# /// case
# title = "When the loss rises the trainer goes on with a copy of the best model, which its optimizer does not know"
# category = "optimizer"
# kind = "optimizer-holds-old-parameters"
# kinds_also_ok = ["stale-parameters-in-optimizer", "model-replaced-after-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["model", "best", "deepcopy", "optimizer"]
# symptom = "after the roll-back the weights do not change any more"
# symptom_check = "trainer.rollbacks > 0 and all(torch.equal(a, b) for a, b in zip(probe, trainer.model.parameters()))"
# cause = "After the roll-back self.model is a new object, and the optimizer still steps the parameters of the old one."
# fix = "load the best weights into the model that the optimizer has"
# ///
import copy

import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr=0.4, patience=1):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)  #! also
        self.best, self.best_loss = copy.deepcopy(model), float("inf")
        self.patience, self.bad_epochs, self.rollbacks = patience, 0, 0

    def train_epoch(self, loader):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  #! also
            total += loss.item()
        return total / len(loader)

    def after_epoch(self, loss):
        if loss < self.best_loss:
            self.best, self.best_loss, self.bad_epochs = copy.deepcopy(self.model), loss, 0
            return
        self.bad_epochs += 1
        if self.bad_epochs >= self.patience:
            self.model = copy.deepcopy(self.best)  #- here
#+             self.model.load_state_dict(self.best.state_dict())
            for group in self.optimizer.param_groups:
                group["lr"] *= 0.25
            self.bad_epochs, self.rollbacks = 0, self.rollbacks + 1


torch.manual_seed(20)
x = torch.randn(60, 6)
y = x[:, :1] * x[:, 1:2]
loader = list(zip(x.split(15), y.split(15)))
trainer = Trainer(nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 1)), lr=0.5)
epochs = 0
while epochs < 7:
    mean = trainer.train_epoch(loader)
    trainer.after_epoch(mean)
    epochs += 1
    print(epochs, mean, trainer.rollbacks)
probe = [p.detach().clone() for p in trainer.model.parameters()]
trainer.train_epoch(loader[:2])
print(trainer.rollbacks, max((a - b).abs().max().item() for a, b in zip(probe, trainer.model.parameters())))
