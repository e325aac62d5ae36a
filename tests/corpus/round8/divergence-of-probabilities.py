# /// case
# title = "kl_div gets the student's probabilities in place of their logarithms"
# category = "loss"
# kind = "kl-div-argument"
# kinds_also_ok = ["kl-div-without-log", "probabilities-as-log-probabilities"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "softmax", "log_softmax"]
# symptom = "the divergence is negative"
# symptom_check = "history[-1] < 0"
# cause = "F.kl_div takes log-probabilities as its first argument, and the student's are given by softmax."
# fix = "log_softmax"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Distiller:
    def __init__(self, teacher, student, temperature=2.0, lr=1e-2):
        self.teacher = teacher.eval()
        self.student = student
        self.temperature = temperature
        self.optimizer = torch.optim.Adam(student.parameters(), lr=lr)
        self.callbacks = []

    def on_step(self, function):
        self.callbacks.append(function)
        return function

    def divergence(self, x):
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / self.temperature, dim=1)
        student = F.softmax(self.student(x) / self.temperature, dim=1)  #- here
#+         student = F.log_softmax(self.student(x) / self.temperature, dim=1)
        return F.kl_div(student, target, reduction="batchmean") * self.temperature ** 2  #! here

    def fit(self, batches):
        for number, x in enumerate(batches):
            self.student.train()
            loss = self.divergence(x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(number, loss.item())


torch.manual_seed(17)
big = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 6))
small = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 6))
distiller = Distiller(big, small)
history = []


@distiller.on_step
def remember(number, value):
    history.append(value)
    if number % 6 == 0:
        print(f"batch {number}: {value:.4f}")


distiller.fit(torch.randn(24, 32, 10))
