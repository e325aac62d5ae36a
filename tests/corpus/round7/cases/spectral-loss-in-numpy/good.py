import numpy as np
import torch
import torch.nn as nn


def spectral_distance(pred, target):
    p = torch.fft.rfft(pred, dim=-1).abs()
    t = torch.fft.rfft(target, dim=-1).abs()
    return (p - t).abs().mean()


class Trainer:
    def __init__(self, model, weights, lr):
        self.model = model
        self.weights = weights
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.last = {}

    def losses(self, noisy, clean):
        pred = self.model(noisy)
        return {"wave": (pred - clean).abs().mean(), "spectral": spectral_distance(pred, clean)}

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            for noisy, clean in batches:
                self.last = self.losses(noisy, clean)
                total = sum(self.weights[name] * value for name, value in self.last.items())
                self.optimizer.zero_grad()
                total.backward()
                self.optimizer.step()
            print(epoch, {k: round(v.item(), 4) for k, v in self.last.items()})


torch.manual_seed(7)
time = torch.linspace(0, 1, 32)
clean = torch.sin(6.28 * torch.randint(1, 6, (18, 1)) * time).unsqueeze(1)
noisy = clean + 0.3 * torch.randn_like(clean)
denoiser = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 1, 5, padding=2))
trainer = Trainer(denoiser, {"wave": 1.0, "spectral": 0.1}, lr=1e-3)
trainer.fit(list(zip(noisy.split(6), clean.split(6))), epochs=3)
