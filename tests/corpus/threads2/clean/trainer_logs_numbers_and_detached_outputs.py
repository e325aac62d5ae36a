import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=lr)
        self.outputs, self.history = [], []

    def step(self, x, y):
        pred = self.model(x)
        loss = nn.functional.mse_loss(pred, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.outputs.append({"loss": loss.detach(), "pred": pred.detach()})

    def end_epoch(self):
        self.history.append(torch.stack([o["loss"] for o in self.outputs]).mean().item())
        self.outputs.clear()


torch.manual_seed(7)
trainer = Trainer(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)), 1e-2)
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(16, 4)
        trainer.step(x, x.sum(1, keepdim=True))
    trainer.end_epoch()
print(trainer.history)
