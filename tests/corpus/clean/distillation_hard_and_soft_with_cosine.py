import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


X = torch.randn(96, 8)
y = (X[:, :3].sum(1) > 0).long() + (X[:, 3] > 1).long()
teacher, student = mlp(8, 64, 64, 3), mlp(8, 12, 3)


def fit_teacher(epochs=6):
    opt = torch.optim.Adam(teacher.parameters(), 1e-2)
    for _ in range(epochs):
        opt.zero_grad()
        F.cross_entropy(teacher(X), y).backward()
        opt.step()


def kd_loss(s, t, y, T=4.0, a=0.7):
    soft = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(s / T, dim=1), F.softmax(t / T, dim=1)) * (T * T)
    return a * soft + (1 - a) * F.cross_entropy(s, y)


fit_teacher()
teacher.eval()
student.train()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5 * 3)
for epoch in range(5):
    running = 0.0
    for idx in torch.randperm(96).split(32):
        with torch.no_grad():
            t = teacher(X[idx])
        s = student(X[idx])
        loss = kd_loss(s, t, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item() * len(idx)
    print(epoch, running / 96)
