import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(), nn.Linear(64, classes),
        )

    def forward(self, x):
        return self.net(x)


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, step):
        alpha = min(self.decay, 1 - 1 / (step + 2))
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(alpha).add_(s, alpha=1 - alpha)
        for t, s in zip(self.teacher.buffers(), self.student.buffers()):
            t.copy_(s)

    def consistency(self, x):
        noisy_s, noisy_t = (x + 0.2 * torch.randn_like(x) for _ in range(2))
        self.teacher.train()
        with torch.no_grad():
            target = F.softmax(self.teacher(noisy_t), dim=1)
        return F.mse_loss(F.softmax(self.student(noisy_s), dim=1), target)


def patterns(n):
    y = torch.randint(0, 3, (n,))
    x = 0.5 * torch.randn(n, 1, 10, 10)
    x[y == 0, :, ::2] += 1
    x[y == 1, :, :, ::2] += 1
    x[y == 2, :, 3:7, 3:7] += 1
    return x, y


def rampup(step, length=40):
    return min(1.0, step / length)


torch.manual_seed(16)
torch.set_num_threads(1)
labelled, unlabelled, test = patterns(24), patterns(200)[0], patterns(150)
mt = MeanTeacher(ConvNet())
optimizer = torch.optim.Adam(mt.student.parameters(), lr=3e-3)
for step in range(75):
    mt.student.train()
    u = unlabelled[torch.randint(0, len(unlabelled), (32,))]
    sup = F.cross_entropy(mt.student(labelled[0]), labelled[1])
    cons = mt.consistency(u)
    loss = sup + 5.0 * rampup(step) * cons
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mt.update(step)
    if step % 25 == 0:
        print(f"{step:3d} supervised {sup.item():.3f} consistency {cons.item():.5f}")

mt.teacher.eval()
accuracy = (mt.teacher(test[0]).argmax(1) == test[1]).float().mean().item()
print("teacher accuracy", accuracy)
