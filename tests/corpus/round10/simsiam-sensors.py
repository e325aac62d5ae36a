# /// case
# title = "The stop-gradient stands on the predictor's side of the similarity"
# category = "graph-break"
# kind = "detach-on-wrong-branch"
# kinds_also_ok = ["wrong-tensor-detached", "predictor-gets-no-gradient", "misplaced-stop-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["detach", "p", "z", "predictor"]
# symptom = "the predictor keeps its initial weights and the projections are pulled to its random output"
# symptom_check = "all(w.grad is None for w in net.predictor.parameters())"
# cause = "The output of the predictor is detached rather than the target projection."
# fix = "detach z, not p"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class SimSiam(nn.Module):
    def __init__(self, channels, width=48, dim=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(channels, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(4 * width, dim), nn.BatchNorm1d(dim),
        )
        self.predictor = nn.Sequential(nn.Linear(dim, dim // 2), nn.BatchNorm1d(dim // 2), nn.ReLU(), nn.Linear(dim // 2, dim))

    def forward(self, window):
        z = self.encoder(window)
        return z, self.predictor(z)


def augment(window):
    scale = 1 + 0.2 * torch.randn(len(window), window.shape[1], 1)
    return scale * window + 0.1 * torch.randn_like(window)


def negative_cosine(p, z):
    return -F.cosine_similarity(p.detach(), z, dim=-1).mean()  #- here
#+     return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


def activities(n, channels=3, length=32):
    kind = torch.randint(0, 4, (n, 1, 1))
    phase = 6.28 * torch.rand(n, channels, 1)
    return torch.sin((1 + kind) * torch.linspace(0, 6.28, length) + phase)


def pretrain(net, windows, epochs, batch=64):
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    curve = []
    for _ in range(epochs):
        for rows in torch.randperm(len(windows)).split(batch):
            (z1, p1), (z2, p2) = net(augment(windows[rows])), net(augment(windows[rows]))
            loss = 0.5 * (negative_cosine(p1, z2) + negative_cosine(p2, z1))  #! also
            opt.zero_grad()
            loss.backward()
            opt.step()
            curve.append(loss.item())
        sched.step()
    return curve


torch.manual_seed(5)
net = SimSiam(channels=3)
curve = pretrain(net, activities(256), epochs=6)
print([round(value, 3) for value in curve[::4]])
