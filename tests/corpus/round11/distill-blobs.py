# /// case
# title = "kl_div gets probabilities instead of log-probabilities"
# category = "loss"
# kind = "kl-div-input-not-log"
# kinds_also_ok = ["kl-div-expects-log-probabilities", "softmax-instead-of-log-softmax", "probabilities-given-to-log-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["student", "softmax", "kl_div"]
# symptom = "the soft loss is negative and does not pull the student to the teacher's distribution"
# symptom_check = "history[-1] < 0"
# cause = "F.kl_div expects the logarithm of the probabilities as its first argument."
# fix = "log_softmax for the student"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def spirals(n, classes=3, noise=0.15):
    label = torch.randint(0, classes, (n,))
    r = torch.rand(n)
    angle = 4 * r + label * (2 * 3.14159 / classes) + noise * torch.randn(n)
    return torch.stack([r * angle.cos(), r * angle.sin()], 1) * 2, label


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


class DistillationLoss:
    def __init__(self, temperature=3.0, alpha=0.8):
        self.T = temperature
        self.alpha = alpha

    def soft(self, student_logits, teacher_logits):
        student = F.softmax(student_logits / self.T, dim=1)  #- here
#+         student = F.log_softmax(student_logits / self.T, dim=1)
        teacher = F.softmax(teacher_logits / self.T, dim=1)
        return F.kl_div(student, teacher, reduction="batchmean") * self.T ** 2  #! also

    def __call__(self, student_logits, teacher_logits, labels):
        hard = F.cross_entropy(student_logits, labels)
        soft = self.soft(student_logits, teacher_logits)  #! also
        return (1 - self.alpha) * hard + self.alpha * soft, soft


def train_teacher(x, y, epochs=40):
    teacher = mlp(2, 64, 64, 3)
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(teacher(x[idx]), y[idx]).backward()
            opt.step()
    return teacher.eval()


def distill(teacher, student, x, y, epochs=40):
    criterion = DistillationLoss()
    opt = torch.optim.Adam(student.parameters(), lr=1e-2)
    history = []
    for epoch in range(epochs):
        student.train()
        for idx in torch.randperm(len(x)).split(64):
            with torch.no_grad():
                t_logits = teacher(x[idx])
            loss, soft = criterion(student(x[idx]), t_logits, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        history.append(soft.item())
        if epoch % 10 == 0:
            print("epoch", epoch, "soft", round(soft.item(), 4), "total", round(loss.item(), 4))
    return history


torch.manual_seed(11)
torch.set_num_threads(1)
x, y = spirals(600)
teacher = train_teacher(x, y)
student = mlp(2, 12, 3)
history = distill(teacher, student, x, y)
print("teacher", accuracy(teacher, x, y), "student", accuracy(student, x, y))
