# /// case
# title = "kl_div is given the student's probabilities in place of their logarithms"
# category = "loss"
# kind = "kl-div-without-log"
# kinds_also_ok = ["kl-div-expects-log-probabilities", "negative-kl-loss", "wrong-loss-input", "softmax-instead-of-log-softmax"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "student_probs", "softmax"]
# symptom = "the divergence is negative from the first step on"
# symptom_check = "max(distiller.soft_losses) < 0"
# cause = "F.kl_div takes log-probabilities first; with probabilities its gradient is that of a dot product."
# fix = "log_softmax for the student"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def bag_of_words(dim, depth, vocab=90, classes=6):
    layers = [nn.EmbeddingBag(vocab, dim, mode="mean")]
    for _ in range(depth):
        layers += [nn.Linear(dim, dim), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(dim, classes))


class Distiller:
    def __init__(self, teacher, student, temperature=2.0, alpha=0.7):
        self.teacher = teacher.eval()
        self.student = student
        self.temperature, self.alpha = temperature, alpha
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=5e-3)
        self.soft_losses, self.hard_losses = [], []

    def soft_loss(self, student_logits, teacher_logits):
        student_probs = F.softmax(student_logits / self.temperature, dim=-1)  #- here
#+         student_probs = F.log_softmax(student_logits / self.temperature, dim=-1)
        teacher_probs = F.softmax(teacher_logits / self.temperature, dim=-1)
        return F.kl_div(student_probs, teacher_probs, reduction="batchmean") * self.temperature ** 2  #! here

    def step(self, ids, labels):
        with torch.no_grad():
            teacher_logits = self.teacher(ids)
        student_logits = self.student(ids)
        soft = self.soft_loss(student_logits, teacher_logits)  #! also
        hard = F.cross_entropy(student_logits, labels)
        self.optimizer.zero_grad()
        (self.alpha * soft + (1 - self.alpha) * hard).backward()  #! also
        self.optimizer.step()
        self.soft_losses.append(soft.item())
        self.hard_losses.append(hard.item())


def sample(count, length=8):
    labels = torch.randint(6, (count,))
    ids = torch.where(torch.rand(count, length) < 0.5, labels[:, None] * 15 + torch.randint(15, (count, length)),
                      torch.randint(90, (count, length)))
    return ids, labels


def train_teacher(steps=50):
    teacher = bag_of_words(48, 2)
    optimizer = torch.optim.Adam(teacher.parameters(), lr=1e-2)
    for _ in range(steps):
        ids, labels = sample(64)
        optimizer.zero_grad()
        F.cross_entropy(teacher(ids), labels).backward()
        optimizer.step()
    return teacher


torch.manual_seed(6)
distiller = Distiller(train_teacher(), bag_of_words(16, 1))
for _ in range(80):
    distiller.step(*sample(32))
print("soft", distiller.soft_losses[0], distiller.soft_losses[-1])
print("hard", distiller.hard_losses[0], distiller.hard_losses[-1])
