import torch
from torch import nn


class Accumulator:
    def __init__(self, optimizer, window, rows_per_step):
        self.optimizer, self.window, self.rows_per_step = optimizer, window, rows_per_step
        self.pending, self.steps = 0, 0

    def backward(self, summed_loss):
        (summed_loss / self.rows_per_step).backward()
        self.pending += 1
        if self.pending == self.window:
            self.flush()

    def flush(self):
        if self.pending == 0:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.pending, self.steps = 0, self.steps + 1


class GaitModel(nn.Module):
    def __init__(self, joints=8, width=40):
        super().__init__()
        self.core = nn.GRUCell(joints, width)
        self.out = nn.Linear(width, 3)

    def forward(self, joints):
        h = torch.zeros(joints.shape[0], self.core.hidden_size)
        for t in range(joints.shape[1]):
            h = self.core(joints[:, t], h)
        return self.out(h)


def gait_batch(n, steps=10, joints=8):
    rate = torch.rand(n, 1, 1) + 0.5
    lag = torch.rand(n, 1, 1) * 2
    t = torch.arange(steps).view(1, -1, 1)
    leg = torch.arange(joints).view(1, 1, -1)
    signal = torch.sin(rate * t + lag * leg)
    target = torch.stack([rate.flatten(), lag.flatten(), (rate * lag).flatten()], 1)
    return signal + 0.02 * torch.randn_like(signal), target


torch.manual_seed(7)
signal, target = gait_batch(330)
model = GaitModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
accumulator = Accumulator(optimizer, window=4, rows_per_step=64)
curve = []
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(len(signal)).split(16):
        loss = nn.functional.mse_loss(model(signal[rows]), target[rows], reduction="sum")
        accumulator.backward(loss)
        total += loss.item()
    accumulator.flush()
    curve.append(total / target.numel())
print("mse", curve[0], "->", curve[-1], "steps", accumulator.steps)
