# /// case
# title = "Restoring the best weights replaces the model, the optimizer keeps the old parameters"
# category = "optimizer"
# kind = "optimizer-holds-replaced-parameters"
# kinds_also_ok = ["model-replaced-after-optimizer", "stale-optimizer-parameters", "optimizer-not-updating-model"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["model", "optimizer", "deepcopy", "snapshot"]
# symptom = "after the first restore the model does not change any more"
# symptom_check = "{id(p) for g in trainer.optimizer.param_groups for p in g['params']}.isdisjoint(id(p) for p in trainer.model.parameters())"
# cause = "trainer.model becomes a new object whose parameters the optimizer does not know."
# fix = "trainer.model.load_state_dict(self.snapshot.state_dict())"
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F


class ChurnNet(nn.Module):
    def __init__(self, cardinalities, numeric, dim=6):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim) for n in cardinalities)
        self.body = nn.Sequential(
            nn.Linear(dim * len(cardinalities) + numeric, 48),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(48, 1),
        )

    def forward(self, codes, numbers):
        columns = [table(codes[:, i]) for i, table in enumerate(self.tables)]
        return self.body(torch.cat([*columns, numbers], dim=1)).squeeze(1)


class Callback:
    def on_epoch_end(self, trainer, metrics):
        pass


class RestoreOnPlateau(Callback):
    """Goes back to the best weights with a smaller step when validation stops improving."""

    def __init__(self, patience=2, shrink=0.5):
        self.patience, self.shrink = patience, shrink
        self.best, self.waited, self.restores = float("inf"), 0, 0

    def on_epoch_end(self, trainer, metrics):
        if metrics["valid"] < self.best:
            self.best, self.waited = metrics["valid"], 0
            self.snapshot = copy.deepcopy(trainer.model)
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.model = copy.deepcopy(self.snapshot)  #- here
#+             trainer.model.load_state_dict(self.snapshot.state_dict())
            for group in trainer.optimizer.param_groups:
                group["lr"] *= self.shrink
            self.waited = 0
            self.restores += 1


class History(Callback):
    def __init__(self):
        self.rows = []

    def on_epoch_end(self, trainer, metrics):
        self.rows.append(metrics)


class Trainer:
    def __init__(self, model, callbacks, lr=2e-2, batch_size=64):
        self.model, self.callbacks, self.batch_size = model, callbacks, batch_size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)  #! also

    def run_epoch(self, data):
        self.model.train()
        total = 0.0
        for rows in torch.randperm(len(data[-1])).split(self.batch_size):
            codes, numbers, churned = (column[rows] for column in data)
            loss = F.binary_cross_entropy_with_logits(self.model(codes, numbers), churned)
            self.optimizer.zero_grad()  #! also
            loss.backward()
            self.optimizer.step()  #! also
            total += loss.item() * len(rows)
        return total / len(data[-1])

    @torch.no_grad()
    def validate(self, data):
        self.model.eval()
        return F.binary_cross_entropy_with_logits(self.model(*data[:2]), data[2]).item()

    def fit(self, train, valid, epochs):
        for epoch in range(epochs):
            metrics = {"train": self.run_epoch(train), "valid": self.validate(valid)}
            for callback in self.callbacks:
                callback.on_epoch_end(self, metrics)


def customers(count, weights):
    codes = torch.stack([torch.randint(0, n, (count,)) for n in (12, 8, 5)], dim=1)
    numbers = torch.randn(count, 6)
    logit = numbers @ weights + (codes[:, 0] % 3 - 1) * 1.2
    return codes, numbers, torch.bernoulli(logit.sigmoid())


torch.manual_seed(40)
weights = torch.randn(6)
train, valid = customers(600, weights), customers(300, weights)
restore, history = RestoreOnPlateau(), History()
trainer = Trainer(ChurnNet((12, 8, 5), 6), [restore, history])
trainer.fit(train, valid, epochs=24)
for epoch, row in enumerate(history.rows[::4]):
    print(epoch * 4, {name: round(value, 4) for name, value in row.items()})
print("best", round(restore.best, 4), "restores", restore.restores)
