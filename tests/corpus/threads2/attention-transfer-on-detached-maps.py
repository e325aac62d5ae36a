# /// case
# title = "Attention transfer whose student maps are detached"
# category = "graph-break"
# kind = "graph-break-detach"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["attention_map", "student_maps", "at_loss"]
# symptom = "the attention term has no grad_fn, so only cross entropy trains the student"
# symptom_check = "last_term.grad_fn is None"
# cause = "detach() in the map that student and teacher share"
# fix = "no detach: the teacher is frozen anyway"
# evidence = [
#     { url = "https://github.com/bboylyg/NAD/issues/8", title = "How does the attention loss work" },
# ]
# ///
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class SmallCNN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block1 = nn.Conv2d(3, width, 3, padding=1)
        self.block2 = nn.Conv2d(width, width, 3, padding=1)
        self.fc = nn.Linear(width, 5)

    def forward(self, x):
        a1 = F.relu(self.block1(x))
        a2 = F.relu(self.block2(a1))
        return self.fc(a2.mean((2, 3))), [a1, a2]


def attention_map(feature):
    energy = feature.detach().pow(2).mean(1)  #- here
#+     energy = feature.pow(2).mean(1)
    return F.normalize(energy.flatten(1))


def at_loss(student_maps, teacher_maps):
    return sum((attention_map(s) - attention_map(t)).pow(2).mean() for s, t in zip(student_maps, teacher_maps))


def run(opt):
    torch.manual_seed(opt.seed)
    student, teacher = SmallCNN(6), SmallCNN(12)
    teacher.eval().requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    term = None
    for _ in range(opt.iterations):
        images, labels = torch.rand(8, 3, 8, 8), torch.randint(0, 5, (8,))
        logits, student_maps = student(images)
        _, teacher_maps = teacher(images)
        ce = F.cross_entropy(logits, labels)
        term = at_loss(student_maps, teacher_maps)  #! also
        loss = ce + opt.beta * term  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return term


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=3)
parser.add_argument("--beta", type=float, default=500.0)
parser.add_argument("--iterations", type=int, default=5)
last_term = run(parser.parse_args([]))
print(float(last_term))
