# /// case
# title = "Deferred log callbacks close over the loss tensors"
# category = "retention-leak"
# kind = "graph-retained-list"
# kinds_also_ok = ["graph-retained", "graph-retained-by-closure"]
# severity = "warning"
# names = ["pending", "defer", "loss", "grad_norm"]
# difficulty = "hard"
# symptom = "memory grows by one graph per step until flush(); no message"
# symptom_check = "any(torch.is_tensor(c.cell_contents) and c.cell_contents.requires_grad for f in reporter.pending for c in (f.__closure__ or ()))"
# cause = "the lambda keeps the tensor loss (and with it its graph) alive until the queue is flushed"
# fix = "take the number out before making the closure"
# evidence = [{ url = "https://github.com/pnnl/neuromancer/pull/292" }, { url = "https://github.com/IBM/mi-prometheus/issues/111" }]
# ///
"""Regression with a reporter that formats its log lines lazily."""
import math
import torch
import torch.nn as nn


class Reporter:
    def __init__(self, flush_every=1000):
        self.pending, self.lines, self.flush_every = [], [], flush_every

    def defer(self, make_line):
        self.pending.append(make_line)  #! also
        if len(self.pending) >= self.flush_every:
            self.flush()

    def flush(self):
        self.lines += [make() for make in self.pending]
        self.pending.clear()


class FourierRegressor(nn.Module):
    def __init__(self, freqs=16, hidden=32):
        super().__init__()
        self.register_buffer("freq", torch.randn(1, freqs) * 3)
        self.net = nn.Sequential(nn.Linear(2 * freqs, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        angle = x @ self.freq
        return self.net(torch.cat([angle.sin(), angle.cos()], dim=1))


def train_step(model, opt, x, y, step, reporter):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    grad_norm = math.sqrt(sum(p.grad.pow(2).sum().item() for p in model.parameters()))
    opt.step()
    reporter.defer(lambda: f"{step:4d} loss {loss.item():.4f} grad {grad_norm:.3f}")  #- here
#+     value = loss.item()
#+     reporter.defer(lambda: f"{step:4d} loss {value:.4f} grad {grad_norm:.3f}")


torch.manual_seed(0)
model, reporter = FourierRegressor(), Reporter()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(40):
    x = torch.rand(64, 1) * 2 - 1
    train_step(model, opt, x, torch.sin(6 * x) + 0.3 * x, step, reporter)
print(len(reporter.pending), "lines pending")
