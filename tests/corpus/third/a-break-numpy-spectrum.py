# /// case
# title = "Spectral loss goes through NumPy"
# category = "graph-break"
# kind = "loss-term-without-gradient"
# kinds_also_ok = ["graph-break-detach", "numpy-on-tracked-tensor", "graph-break-new-tensor"]
# severity = "warning"
# names = ["spectrum", "spectral_loss", "numpy", "detach"]
# difficulty = "medium"
# symptom = "the spectral term does not influence training, only the waveform term does"
# symptom_check = "not terms[\"spectral\"].requires_grad"
# cause = "detach().numpy() leaves autograd; from_numpy returns a constant"
# fix = "use torch.fft"
# evidence = [{ url = "https://github.com/HuXiaoling/TopoLoss/issues/8" }, { url = "https://github.com/Wuziyi616/multi_part_assembly/issues/4" }]
# ///
"""Denoising a waveform with a time-domain and a multi-resolution spectral loss."""
import numpy as np
import torch
import torch.nn as nn


def spectrum(x, size):
    frames = x.unfold(-1, size, size // 2)
    mag = np.abs(np.fft.rfft(frames.detach().numpy(), axis=-1))  #- here
    return torch.from_numpy(mag).float()  #- here
#+     return torch.fft.rfft(frames, dim=-1).abs()


def spectral_loss(pred, target, sizes=(16, 32)):
    total = torch.zeros(())
    for size in sizes:
        a, b = spectrum(pred, size), spectrum(target, size)  #! also
        total = total + (a - b).abs().mean() + (torch.log1p(a) - torch.log1p(b)).abs().mean()
    return total / len(sizes)


class Denoiser(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4), nn.PReLU(),
            nn.Conv1d(width, width, 9, padding=8, dilation=2), nn.PReLU(),
            nn.Conv1d(width, 1, 9, padding=4),
        )

    def forward(self, x):
        return x + self.net(x.unsqueeze(1)).squeeze(1)


torch.manual_seed(0)
model = Denoiser()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
time = torch.linspace(0, 1, 128)
for step in range(20):
    freq = torch.empty(8, 1).uniform_(3, 20)
    clean = torch.sin(2 * np.pi * freq * time)
    pred = model(clean + 0.3 * torch.randn_like(clean))
    terms = {"wave": (pred - clean).abs().mean(), "spectral": spectral_loss(pred, clean)}  #! also
    loss = terms["wave"] + 0.5 * terms["spectral"]  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print({k: round(float(v.detach()), 3) for k, v in terms.items()})
