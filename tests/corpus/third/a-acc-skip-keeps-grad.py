# /// case
# title = "Skipped update leaves its oversized gradient for the next step"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# severity_by_writer = "error"
# names = ["norm", "guard", "zero_grad", "train_step", "skipped"]
# difficulty = "hard"
# symptom = "the gradient that was to be discarded is added to the following batch"
# symptom_check = "(train_step(torch.randn(32, 8), torch.full((32, 1), 1e4)), any(p.grad is not None and float(p.grad.abs().sum()) > 0 for p in model.parameters()))[1]"
# cause = "zero_grad() follows step(); the early return for a gradient spike passes over both"
# fix = "clear the gradients before returning"
# evidence = [{ url = "https://github.com/espnet/espnet/pull/3283" }, { url = "https://github.com/tatsu-lab/alpaca_farm/pull/58" }]
# ///
"""Training with gradient-spike rejection."""
import logging
import torch
from torch import nn

log = logging.getLogger("train")


def grad_norm(module):
    return torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in module.parameters()])).item()


class SpikeGuard:
    """Running estimate of the gradient norm; a batch far above it is rejected."""

    def __init__(self, factor=8.0, decay=0.9):
        self.factor, self.decay, self.level = factor, decay, None

    def accepts(self, norm):
        if self.level is None:
            self.level = norm
        if norm > self.factor * self.level:
            return False
        self.level = self.decay * self.level + (1 - self.decay) * norm
        return True


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.02)
guard, skipped = SpikeGuard(), []


def train_step(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()  #! also
    norm = grad_norm(model)
    if not guard.accepts(norm):  #! also
        log.info("rejected batch, gradient norm %.1f", norm)
        skipped.append(norm)  #! here
#+         opt.zero_grad()
        return None  #! here
    opt.step()
    opt.zero_grad()  #! here
    return loss.item()


values = []
for step in range(60):
    x = torch.randn(32, 8)
    y = x[:, :1] - 2 * x[:, 1:2]
    if step % 15 == 14:
        y = y * 60
    value = train_step(x, y)
    if value is not None:
        values.append(value)
print(f"{len(skipped)} rejected, loss {values[0]:.3f} -> {values[-1]:.3f}")
