# /// case
# title = "Rounding without a straight-through estimator"
# category = "custom-function"
# kind = "zero-gradient-op"
# severity = "warning"
# severity_by_writer = "error"
# names = ["round", "fake_quantise", "weight"]
# difficulty = "medium"
# symptom = "Weights of the quantised layers have gradients that are exactly zero and never change; only the biases train."
# symptom_check = "net.c1.weight.grad.abs().max().item() == 0"
# cause = "torch.round has derivative zero; w_q = round(w / s) * s with a detached scale gives the weight no gradient."
# fix = "Straight-through: w + (w_q - w).detach()."
# evidence = [{ url = "https://github.com/Justin-Tan/generative-compression/issues/27" }, { url = "https://github.com/apache/mxnet/pull/16373" }, { url = "https://github.com/pytorch/ao/pull/4806" }]
# ///
"""Keyword spotting with 4-bit weights (quantisation-aware training)."""
import torch
import torch.nn.functional as F
from torch import nn


def fake_quantise(w, bits):
    levels = 2 ** (bits - 1) - 1
    scale = w.detach().abs().max() / levels
    q = torch.round(w / scale).clamp(-levels, levels) * scale  #! here
    return q  #- here
#+     return w + (q - w).detach()


class QConv1d(nn.Conv1d):
    def __init__(self, *args, bits=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.bits = bits

    def forward(self, x):
        return F.conv1d(x, fake_quantise(self.weight, self.bits), self.bias, self.stride, self.padding)  #! also


class QLinear(nn.Linear):
    def __init__(self, *args, bits=4, **kwargs):
        super().__init__(*args, **kwargs)
        self.bits = bits

    def forward(self, x):
        return F.linear(x, fake_quantise(self.weight, self.bits), self.bias)  #! also


class KeywordNet(nn.Module):
    def __init__(self, bands=6, words=3):
        super().__init__()
        self.c1 = QConv1d(bands, 16, 5, padding=2)
        self.c2 = QConv1d(16, 16, 5, stride=2, padding=2)
        self.fc = QLinear(16, words)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        return self.fc(x.mean(-1))


def spectrogram(n):
    y = torch.randint(0, 3, (n,))
    x = 0.3 * torch.randn(n, 6, 16)
    for i, c in enumerate(y.tolist()):
        x[i, 2 * c : 2 * c + 2, 4:12] += 1.5
    return x, y


torch.manual_seed(0)
net = KeywordNet()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
losses = []
for step in range(25):
    x, y = spectrogram(48)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
