# /// case
# title = "kl_div receives the student's probabilities instead of their logarithms"
# category = "loss"
# kind = "kl-div-without-log"
# kinds_also_ok = ["probabilities-instead-of-log-probabilities", "kl-div-wrong-input", "missing-log-softmax"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "softmax", "soft"]
# symptom = "the distillation loss is negative and the student becomes far more certain than the teacher"
# symptom_check = "min(log['kd']) < 0"
# cause = "kl_div expects log-probabilities as its first argument."
# fix = "log_softmax for the student"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Ranker(nn.Module):
    def __init__(self, context, items, hidden, depth):
        super().__init__()
        sizes = [context] + [hidden] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(hidden, items)

    def forward(self, x):
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
        return self.out(x)


class DistillationLoss:
    def __init__(self, temperature=2.0, alpha=0.7):
        self.temperature, self.alpha = temperature, alpha

    def soft_targets(self, student, teacher):
        soft = F.softmax(student / self.temperature, dim=-1)  #- here
#+         soft = F.log_softmax(student / self.temperature, dim=-1)
        goal = F.softmax(teacher / self.temperature, dim=-1)  #! also
        loss = F.kl_div(soft, goal, reduction="batchmean") * self.temperature ** 2  #! here
        return loss

    def __call__(self, student, teacher, clicked):
        kd = self.soft_targets(student, teacher)
        ce = F.cross_entropy(student, clicked)
        return self.alpha * kd + (1 - self.alpha) * ce, kd.item(), ce.item()


def sessions(n, context=10, items=15):
    x = torch.randn(n, context)
    logits = torch.tanh(x @ torch.randn(context, 8)) @ torch.randn(8, items)
    return x, torch.distributions.Categorical(logits=logits).sample()


def fit_teacher(teacher, x, clicked, steps=60):
    opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (128,))
        loss = F.cross_entropy(teacher(x[rows]), clicked[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return teacher.eval().requires_grad_(False)


torch.manual_seed(9)
x, clicked = sessions(600)
teacher = fit_teacher(Ranker(10, 15, 48, 2), x, clicked)
student = Ranker(10, 15, 12, 1)
criterion = DistillationLoss()
opt = torch.optim.Adam(student.parameters(), lr=0.01)
log = {"total": [], "kd": [], "ce": []}
for step in range(80):
    rows = torch.randint(0, len(x), (96,))
    total, kd, ce = criterion(student(x[rows]), teacher(x[rows]), clicked[rows])
    opt.zero_grad()
    total.backward()
    opt.step()
    for name, value in zip(log, (total.item(), kd, ce)):
        log[name].append(value)
print({name: (round(v[0], 3), round(v[-1], 3)) for name, v in log.items()})
