# /// case
# title = "The compressed code is rounded without a straight-through estimator"
# category = "graph-break"
# kind = "rounding-kills-gradient"
# kinds_also_ok = ["zero-gradient", "non-differentiable-round"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["round", "analysis"]
# symptom = "the analysis transform receives only zero gradients"
# symptom_check = "all(float(p.grad.abs().max()) == 0 for p in codec.analysis.parameters())"
# cause = "the derivative of round is zero"
# fix = "straight-through, or noise in training"
# ///
import torch
from torch import nn


class Codec(nn.Module):
    def __init__(self, n=16, code=5, levels=8):
        super().__init__()
        self.levels = levels
        self.analysis = nn.Sequential(nn.Linear(n, 20), nn.ELU(), nn.Linear(20, code))
        self.synthesis = nn.Sequential(nn.Linear(code, 20), nn.ELU(), nn.Linear(20, n))

    def quantize(self, y):
        scaled = torch.sigmoid(y) * (self.levels - 1)
        return torch.round(scaled) / (self.levels - 1)  #- here
#+         return (scaled + (torch.round(scaled) - scaled).detach()) / (self.levels - 1)

    def forward(self, x):
        code = self.quantize(self.analysis(x))  #! also
        return self.synthesis(code), code


def psnr(mse):
    return -10 * torch.log10(mse)


def run(codec, signals, epochs, batch=10):
    optimizer = torch.optim.Adam(codec.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for chunk in signals[torch.randperm(len(signals))].split(batch):
            reconstruction, _ = codec(chunk)
            distortion = (reconstruction - chunk).square().mean()
            optimizer.zero_grad()
            distortion.backward()
            optimizer.step()
        yield epoch, psnr(distortion.detach()).item()


torch.manual_seed(5)
phase = torch.rand(40, 1) * 6.28
signals = torch.sin(torch.linspace(0, 6.28, 16) + phase)
codec = Codec()
for epoch, quality in run(codec, signals, epochs=5):
    print(epoch, round(quality, 2))
