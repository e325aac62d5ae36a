# /// case
# title = "Gradients are cleared before each micro-batch, so only the last of them counts"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["accumulated-gradients-discarded", "zero-grad-every-micro-batch", "only-last-micro-batch-counts"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "micro", "backward"]
# symptom = "three quarters of the examples have no influence and the steps are four times too small"
# symptom_check = "(trainer.backward(series, target), trainer.optimizer.zero_grad(), trainer.backward(series, target), not torch.allclose(model.head.weight.grad, torch.autograd.grad(F.smooth_l1_loss(model(series), target), model.head.weight)[0], rtol=1e-3, atol=1e-7))[-1]"
# cause = "zero_grad in the loop over micro-batches throws away what the earlier ones contributed."
# fix = "clear once before the loop"
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn


class LoadForecaster(nn.Module):
    def __init__(self, hidden=24, horizon=6):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, horizon)

    def forward(self, history):
        _, last = self.rnn(history.unsqueeze(-1))
        return self.head(last.squeeze(0))


class Trainer:
    def __init__(self, model, lr=8e-3, micro=4, total_steps=24, max_norm=1.0):
        self.model, self.micro, self.max_norm = model, micro, max_norm
        self.criterion = nn.SmoothL1Loss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, lr, total_steps=total_steps)

    def backward(self, history, target):
        value = 0.0
#+         self.optimizer.zero_grad(set_to_none=True)
        for x, y in zip(history.chunk(self.micro), target.chunk(self.micro)):  #! here
            self.optimizer.zero_grad(set_to_none=True)  #- here
            loss = self.criterion(self.model(x), y) / self.micro  #! also
            loss.backward()  #! also
            value += loss.item()
        return value

    def fit(self, history, target, epochs, batch):
        for epoch in range(epochs):
            for rows in torch.randperm(len(history)).split(batch):
                value = self.backward(history[rows], target[rows])
                nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
                self.optimizer.step()
                self.scheduler.step()
                yield epoch, value


def daily_windows(count, length=24, horizon=6):
    start = 24 * torch.rand(count, 1)
    hours = start + torch.arange(length + horizon)
    load = torch.sin(2 * math.pi * hours / 24) + 0.3 * torch.sin(4 * math.pi * hours / 24)
    load = load + 0.05 * torch.randn_like(load)
    return load[:, :length], load[:, length:]


torch.manual_seed(8)
series, target = daily_windows(256)
model = LoadForecaster()
trainer = Trainer(model)
curve = [value for _, value in trainer.fit(series, target, epochs=6, batch=64)]
print(f"{curve[0]:.4f} -> {curve[-1]:.4f}, lr {trainer.scheduler.get_last_lr()[0]:.2e}")
