import torch
import torch.nn as nn
import torch.nn.functional as F


class Distiller:
    def __init__(self, student, teacher, alpha=0.4, temperature=3.0):
        self.student, self.teacher = student, teacher.eval()
        self.alpha, self.t = alpha, temperature
        self.optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)

    def train_step(self, x, y):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.t, 1)
        logits = self.student(x)
        kd = F.kl_div(F.log_softmax(logits / self.t, 1), soft, reduction="batchmean") * self.t**2
        loss = self.alpha * F.cross_entropy(logits, y) + (1 - self.alpha) * kd
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(40)
job = Distiller(nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 4)))
print([job.train_step(torch.randn(16, 8), torch.randint(0, 4, (16,))) for _ in range(4)])
