# /// case
# title = "The moving average of the weights keeps the graph of every step"
# category = "retention"
# kind = "ema-keeps-graph"
# kinds_also_ok = ["graph-retained", "moving-average-not-detached", "memory-grows", "missing-no-grad"]
# severity = "warning"
# names = ["shadow", "update", "ema"]
# symptom = "the averaged weights require grad and hold a graph that grows with every update"
# symptom_check = "any(value.grad_fn is not None for value in ema.shadow.values())"
# cause = "the average is computed from the live parameters without detach or no_grad."
# fix = "detach the parameter"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call


class Denoiser(nn.Module):
    def __init__(self, levels, hidden=48):
        super().__init__()
        self.time = nn.Embedding(levels, hidden)
        self.enter = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.leave = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.enter(x) + self.time(t)
        for block in self.blocks:
            h = h + block(F.silu(h))
        return self.leave(F.silu(h))


class Schedule:
    def __init__(self, levels, low=1e-3, high=0.25):
        self.levels = levels
        self.beta = torch.linspace(low, high, levels)
        self.alpha_bar = torch.cumprod(1 - self.beta, 0)

    def noise(self, x, t):
        eps = torch.randn_like(x)
        signal = self.alpha_bar[t, None]
        return signal.sqrt() * x + (1 - signal).sqrt() * eps, eps

    @torch.no_grad()
    def generate(self, predict, count):
        x = torch.randn(count, 2)
        for level in reversed(range(self.levels)):
            t = torch.full((count,), level)
            eps = predict(x, t)
            x = (x - self.beta[level] / (1 - self.alpha_bar[level]).sqrt() * eps) / (1 - self.beta[level]).sqrt()
            if level:
                x = x + self.beta[level].sqrt() * torch.randn_like(x)
        return x


class WeightAverage:
    def __init__(self, model, decay=0.98):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model):  #! also
        for name, p in model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p  #- here
#+             self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.detach()

    def predictor(self, model):
        return lambda x, t: functional_call(model, self.shadow, (x, t))


def ring(count):
    angle = torch.rand(count) * 2 * torch.pi
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(count, 2)


torch.manual_seed(50)
schedule = Schedule(levels=20)
model = Denoiser(schedule.levels)
ema = WeightAverage(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
for step in range(250):
    x = ring(128)
    t = torch.randint(schedule.levels, (len(x),))
    noisy, eps = schedule.noise(x, t)
    loss = F.mse_loss(model(noisy, t), eps)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)  #! also
    if step % 50 == 0:
        print(f"{step:4d} {loss.item():.4f}")
radius = schedule.generate(ema.predictor(model), 256).norm(dim=1)
print(f"generated radius {radius.mean().item():.3f} +- {radius.std().item():.3f}")
