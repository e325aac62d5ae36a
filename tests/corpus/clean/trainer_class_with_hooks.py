import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_batch_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class Logger(Callback):
    def __init__(self):
        self.rows = []

    def on_batch_end(self, trainer, loss):
        norm = sum(p.grad.norm() ** 2 for p in trainer.model.parameters()) ** 0.5
        self.rows.append((trainer.step, loss.detach().item(), norm.item()))


class Trainer:
    def __init__(self, model, lr, callbacks):
        self.model, self.callbacks, self.step = model, callbacks, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, lr * 10, total_steps=12)

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.step += 1
                for callback in self.callbacks:
                    callback.on_batch_end(self, loss)
            for callback in self.callbacks:
                callback.on_epoch_end(self)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)
        return hits / len(loader.dataset)


torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 7), torch.randint(0, 3, (60,)))
model = nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
trainer = Trainer(model, 1e-3, [Logger()])
trainer.fit(DataLoader(data, batch_size=15, shuffle=True), 3)
print(trainer.evaluate(DataLoader(data, batch_size=20)), len(trainer.callbacks[0].rows))
