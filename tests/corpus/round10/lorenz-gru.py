# /// case
# title = "The gradients are clipped after the step has used them"
# category = "optimizer"
# kind = "clip-after-step"
# kinds_also_ok = ["gradient-clipping-wrong-place", "clipping-has-no-effect", "step-before-clip"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clip_grad_norm_", "step", "optimizer"]
# symptom = "single updates are several times larger than lr * max_norm allows"
# symptom_check = "max(e.moved for e in log) > 1.01 * cfg.lr * cfg.max_norm"
# cause = "clip_grad_norm_ changes gradients that zero_grad throws away next."
# fix = "clip between backward and step"
# ///
from types import SimpleNamespace as NS

import torch
from torch.nn.utils import parameters_to_vector

cfg = NS(seed=31, steps=70, window=24, batch=32, hidden=24, lr=0.5, max_norm=0.2)


def lorenz(n, dt=0.02):
    x = torch.tensor([1.0, 1.0, 20.0])
    path = []
    for _ in range(n):
        a, b, c = x.unbind()
        x = x + dt * torch.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])
        path.append(x)
    path = torch.stack(path[200:])
    return (path - path.mean(0)) / path.std(0)


class Forecaster(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gru = torch.nn.GRU(dim, hidden, batch_first=True)
        self.readout = torch.nn.Linear(hidden, dim)

    def forward(self, window):
        features, _ = self.gru(window)
        return self.readout(features)


torch.manual_seed(cfg.seed)
series = lorenz(1500)
model = Forecaster(3, cfg.hidden)
weights = list(model.parameters())
optimizer = torch.optim.SGD(weights, lr=cfg.lr)
log = []

for step in range(cfg.steps):
    starts = torch.randint(len(series) - cfg.window - 1, (cfg.batch,))
    rows = starts[:, None] + torch.arange(cfg.window + 1)
    windows = series[rows]
    loss = (model(windows[:, :-1]) - windows[:, 1:]).square().mean()
    previous = parameters_to_vector(weights).detach().clone()

    optimizer.zero_grad()
    loss.backward()  #! also
#+     norm = torch.nn.utils.clip_grad_norm_(weights, cfg.max_norm)
    optimizer.step()  #! here
    norm = torch.nn.utils.clip_grad_norm_(weights, cfg.max_norm)  #- here

    moved = (parameters_to_vector(weights).detach() - previous).norm()
    log.append(NS(loss=loss.item(), norm=norm.item(), moved=moved.item()))

print("loss", log[0].loss, log[-1].loss)
print("largest update", max(e.moved for e in log))
