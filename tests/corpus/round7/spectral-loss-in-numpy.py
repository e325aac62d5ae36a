# /// case
# title = "The spectral term takes the prediction through numpy"
# category = "graph-break"
# kind = "numpy-breaks-graph"
# kinds_also_ok = ["graph-break", "constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["spectral_distance", "spectral"]
# symptom = "the spectral term is a constant for autograd"
# symptom_check = 'not trainer.last["spectral"].requires_grad'
# cause = "numpy computes outside of the graph"
# fix = "torch.fft"
# ///
import numpy as np
import torch
import torch.nn as nn


def spectral_distance(pred, target):
    p = np.abs(np.fft.rfft(pred.detach().cpu().numpy(), axis=-1))  #- here
    t = np.abs(np.fft.rfft(target.cpu().numpy(), axis=-1))  #-
    return torch.from_numpy(np.abs(p - t)).float().mean()  #- also
#+     p = torch.fft.rfft(pred, dim=-1).abs()
#+     t = torch.fft.rfft(target, dim=-1).abs()
#+     return (p - t).abs().mean()


class Trainer:
    def __init__(self, model, weights, lr):
        self.model = model
        self.weights = weights
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.last = {}

    def losses(self, noisy, clean):
        pred = self.model(noisy)
        return {"wave": (pred - clean).abs().mean(), "spectral": spectral_distance(pred, clean)}  #! also

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
