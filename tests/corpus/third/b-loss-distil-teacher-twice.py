# /// case
# title = "Distillation term compares the teacher with itself"
# category = "loss-wiring"
# kind = "loss-term-without-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["soft_loss", "teacher_logits", "student_logits"]
# difficulty = "hard"
# symptom = "The student trains on labels only; the KL term is 0 at every step."
# symptom_check = "max(abs(s) for s, _ in distiller.log) < 1e-4"
# cause = "soft_loss uses teacher_logits for both arguments, so it is a constant zero and gives the student no gradient."
# fix = "Use the student's logits in the log_softmax argument."
# evidence = [{ url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66" }]
# ///
"""Knowledge distillation, large MLP -> small MLP."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class DistilConfig:
    temperature: float = 3.0
    alpha: float = 0.7
    lr: float = 1e-2
    steps: int = 40


def make_net(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


def make_batch(n=96):
    x = torch.randn(n, 6)
    y = (x[:, 0] > 0).long() * 2 + (x[:, 1] * x[:, 2] > 0).long()
    return x, y


class Distiller:
    def __init__(self, teacher, student, cfg):
        self.teacher, self.student, self.cfg = teacher.eval().requires_grad_(False), student, cfg
        self.opt = torch.optim.Adam(student.parameters(), lr=cfg.lr)
        self.log = []

    def losses(self, x, y):
        t = self.cfg.temperature
        with torch.no_grad():
            teacher_logits = self.teacher(x)
        student_logits = self.student(x)
        soft_target = F.softmax(teacher_logits / t, dim=-1)
        soft_pred = F.log_softmax(teacher_logits / t, dim=-1)  #- here
#+         soft_pred = F.log_softmax(student_logits / t, dim=-1)
        soft_loss = F.kl_div(soft_pred, soft_target, reduction="batchmean") * t * t  #! here
        hard_loss = F.cross_entropy(student_logits, y)
        return soft_loss, hard_loss

    def step(self, x, y):
        soft_loss, hard_loss = self.losses(x, y)
        loss = self.cfg.alpha * soft_loss + (1 - self.cfg.alpha) * hard_loss  #! also
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.log.append((soft_loss.item(), hard_loss.item()))


torch.manual_seed(0)
teacher = make_net(48)
opt_t = torch.optim.Adam(teacher.parameters(), lr=5e-3)
for _ in range(120):
    x, y = make_batch()
    loss = F.cross_entropy(teacher(x), y)
    opt_t.zero_grad()
    loss.backward()
    opt_t.step()

distiller = Distiller(teacher, make_net(12), DistilConfig())
for _ in range(distiller.cfg.steps):
    distiller.step(*make_batch())
print("first", distiller.log[0], "last", distiller.log[-1])
