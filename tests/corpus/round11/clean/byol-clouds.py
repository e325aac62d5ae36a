import copy

import torch
from torch import nn
import torch.nn.functional as F


class PointEncoder(nn.Module):
    def __init__(self, width=32, out=16):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.project = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, out))

    def features(self, cloud):
        return self.point(cloud).amax(1)

    def forward(self, cloud):
        return self.project(self.features(cloud))


class BYOL(nn.Module):
    def __init__(self, encoder, out=16, momentum=0.97):
        super().__init__()
        self.online = encoder
        self.teacher = copy.deepcopy(encoder)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.predict = nn.Sequential(nn.Linear(out, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, out))
        self.momentum = momentum

    def forward(self, first, second):
        loss = 0.0
        for a, b in ((first, second), (second, first)):
            predicted = self.predict(self.online(a))
            with torch.no_grad():
                wanted = self.teacher(b)
            loss = loss + 2 - 2 * F.cosine_similarity(predicted, wanted.detach(), dim=-1).mean()
        return loss

    @torch.no_grad()
    def advance_teacher(self):
        for slow, fast in zip(self.teacher.parameters(), self.online.parameters()):
            slow.mul_(self.momentum).add_(fast, alpha=1 - self.momentum)
        for slow, fast in zip(self.teacher.buffers(), self.online.buffers()):
            slow.copy_(fast)


def shapes(count, points=48):
    kind = torch.randint(3, (count,))
    sphere = F.normalize(torch.randn(count, points, 3), dim=-1)
    cube = torch.rand(count, points, 3) * 2 - 1
    face = cube / cube.abs().amax(-1, keepdim=True)
    disc = sphere * torch.tensor([1.0, 1.0, 0.05])
    return torch.where((kind == 0)[:, None, None], sphere, torch.where((kind == 1)[:, None, None], face, disc)), kind


def augment(cloud):
    angle = torch.rand(len(cloud)) * 6.283
    c, s, o, l = angle.cos(), angle.sin(), torch.zeros(len(cloud)), torch.ones(len(cloud))
    turn = torch.stack([c, -s, o, s, c, o, o, o, l], 1).view(-1, 3, 3)
    scale = 0.8 + 0.4 * torch.rand(len(cloud), 1, 1)
    return scale * cloud @ turn + 0.02 * torch.randn_like(cloud)


def probe(encoder, clouds, labels, steps=60):
    encoder.eval()
    with torch.no_grad():
        frozen = encoder.features(clouds)
    head = nn.Linear(frozen.size(1), 3)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(head(frozen), labels).backward()
        optimizer.step()
    return (head(frozen).argmax(1) == labels).float().mean().item()


torch.manual_seed(38)
clouds, labels = shapes(192)
learner = BYOL(PointEncoder())
optimizer = torch.optim.AdamW((p for p in learner.parameters() if p.requires_grad), lr=3e-3, weight_decay=1e-3)
curve = []
for epoch in range(12):
    for index in torch.randperm(len(clouds)).split(48):
        loss = learner(augment(clouds[index]), augment(clouds[index]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        learner.advance_teacher()
    curve.append(loss.item())
print(f"similarity loss {curve[0]:.3f} -> {curve[-1]:.3f}, linear probe {probe(learner.online, clouds, labels):.3f}")
