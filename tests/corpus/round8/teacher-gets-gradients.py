# /// case
# title = "The mean teacher's output is part of the graph of the consistency loss"
# category = "flags"
# kind = "target-network-gets-gradients"
# kinds_also_ok = ["missing-no-grad", "target-not-detached", "teacher-in-graph"]
# severity = "warning"
# names = ["teacher", "consistency", "no_grad", "detach"]
# symptom = "gradients pile up in the teacher's parameters"
# symptom_check = "any(p.grad is not None for p in learner.teacher.parameters())"
# cause = "The teacher is run with grad and its output is not detached, so that the consistency loss also differentiates the target."
# fix = "run the teacher under no_grad"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanTeacher:
    def __init__(self, student, decay=0.95, weight=2.0):
        self.student = student
        self.teacher = copy.deepcopy(student)  #! here
        self.decay, self.weight = decay, weight
        self.optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)

    def consistency(self, x):
        guess = self.student(x + 0.1 * torch.randn_like(x)).softmax(1)
        goal = self.teacher(x + 0.1 * torch.randn_like(x)).softmax(1)  #- here
#+         with torch.no_grad():
#+             goal = self.teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
        return F.mse_loss(guess, goal)  #! here

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(fast, 1 - self.decay)

    def step(self, labelled, label, unlabelled):
        supervised = F.cross_entropy(self.student(labelled), label)
        loss = supervised + self.weight * self.consistency(torch.cat([labelled, unlabelled]))
        self.optimizer.zero_grad()
        loss.backward()  #! also
        self.optimizer.step()
        self.follow()
        return supervised.item(), loss.item()


def moons(n):
    label = torch.randint(0, 2, (n,))
    angle = torch.rand(n) * 3.1416 + label * 3.1416
    points = torch.stack([angle.cos() + label, angle.sin() + 0.3 * label], dim=1)
    return points + 0.1 * torch.randn(n, 2), label


torch.manual_seed(31)
learner = MeanTeacher(nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2)))
few, few_label = moons(12)
for step in range(15):
    many, _ = moons(40)
    report = learner.step(few, few_label, many)
    if step % 5 == 0:
        print(step, *report)
