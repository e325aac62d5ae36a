# /// case
# title = "torch.where over a division by zero"
# category = "numerics"
# kind = "where-with-nan-branch"
# kinds_also_ok = ["nan-gradient-through-where", "division-by-zero", "nan-gradient", "masked-nan"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["ideal", "where", "cutoff", "n"]
# symptom = "the cut-off frequencies and then everything become NaN after one step"
# symptom_check = "bool(model.sinc.low.isnan().any())"
# cause = "at n = 0 the unused branch is 0/0 and its gradient is NaN although where() does not select it."
# fix = "make the denominator safe before dividing"
# ///
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

RATE = 1000


class SincConv(nn.Module):
    """Band-pass filters with learnable cut-off frequencies (after SincNet)."""

    def __init__(self, filters=6, kernel=31):
        super().__init__()
        self.kernel = kernel
        edges = torch.linspace(20, 400, filters + 1) / RATE
        self.low = nn.Parameter(edges[:-1].unsqueeze(1).clone())
        self.band = nn.Parameter((edges[1:] - edges[:-1]).unsqueeze(1).clone())
        n = torch.arange(kernel) - kernel // 2
        self.register_buffer("n", n.float().unsqueeze(0))
        self.register_buffer("window", torch.hamming_window(kernel, periodic=False).unsqueeze(0))

    def low_pass(self, cutoff):
        n = self.n  #! also
        ideal = torch.sin(2 * math.pi * cutoff * n) / (math.pi * n)  #- here
#+         safe = torch.where(n == 0, torch.ones_like(n), n)
#+         ideal = torch.sin(2 * math.pi * cutoff * safe) / (math.pi * safe)
        return torch.where(n == 0, 2 * cutoff, ideal)  #! also

    def forward(self, x):
        low = self.low.abs()
        high = (low + self.band.abs()).clamp(max=0.5)
        filters = (self.low_pass(high) - self.low_pass(low)) * self.window  #! also
        return F.conv1d(x, filters.unsqueeze(1), padding=self.kernel // 2)


class AudioNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.sinc = SincConv()
        self.norm = nn.BatchNorm1d(6)
        self.fc = nn.Linear(6, classes)

    def forward(self, x):
        energy = self.sinc(x).square().mean(-1)
        return self.fc(self.norm(energy))


def tones(n, length=200):
    label = torch.randint(0, 3, (n,))
    freq = torch.tensor([60.0, 160.0, 310.0])[label] + 20 * torch.randn(n)
    t = torch.arange(length) / RATE
    wave = torch.sin(2 * math.pi * freq[:, None] * t + 6.28 * torch.rand(n, 1))
    return (wave + 0.5 * torch.randn(n, length)).unsqueeze(1), label


torch.manual_seed(13)
torch.set_num_threads(1)
model = AudioNet()
optimizer = torch.optim.RMSprop([
    {"params": model.sinc.parameters(), "lr": 1e-4},
    {"params": [*model.norm.parameters(), *model.fc.parameters()], "lr": 1e-2},
])
losses = []
for step in range(40):
    x, y = tones(32)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    losses.append(loss.item())
    if step % 10 == 0:
        print(f"step {step}: loss {losses[-1]:.4f}")
print("cut-offs (Hz):", (model.sinc.low.detach().flatten() * RATE).tolist())
