# /// case
# title = "Distiller stores student and teacher under each other's name"
# category = "identity"
# kind = "optimizer-holds-other-model"
# kinds_also_ok = ["step-without-gradient", "parameters-not-in-optimizer"]
# severity = "warning"
# names = ["self.teacher", "self.student", "student", "teacher"]
# symptom = "the student never changes; gradients go to the teacher"
# symptom_check = "torch.equal(head, student[3].weight)"
# cause = "the two assignments are crossed"
# fix = "assign each to its own name"
# evidence = [
#     { url = "https://github.com/keras-team/keras-io/pull/242", title = "Add knowledge distillation example" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Distiller(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = student  #- here
        self.student = teacher  #- here
#+         self.teacher = teacher
#+         self.student = student

    def compile(self, optimizer, alpha=0.3, temperature=3.0):
        self.optimizer, self.alpha, self.temperature = optimizer, alpha, temperature

    def train_step(self, x, y):
        self.teacher.eval()
        with torch.no_grad():
            teacher_predictions = self.teacher(x)  #! also
        student_predictions = self.student(x)  #! also
        student_loss = F.cross_entropy(student_predictions, y)
        distillation_loss = F.kl_div(
            F.log_softmax(student_predictions / self.temperature, dim=1),
            F.softmax(teacher_predictions / self.temperature, dim=1),
            reduction="batchmean",
        )
        loss = self.alpha * student_loss + (1 - self.alpha) * distillation_loss
        self.zero_grad()
        loss.backward()
        self.optimizer.step()  #! also
        return {"s_loss": student_loss.item(), "d_loss": distillation_loss.item()}


def cnn(width):
    return nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(width * 9, 10))


torch.manual_seed(66)
teacher, student = cnn(16), cnn(4)
distiller = Distiller(student=student, teacher=teacher)
distiller.compile(torch.optim.Adam(student.parameters(), lr=1e-3))  #! also
head = student[3].weight.detach().clone()
for _ in range(5):
    logs = distiller.train_step(torch.rand(16, 1, 8, 8), torch.randint(0, 10, (16,)))
print(logs)
