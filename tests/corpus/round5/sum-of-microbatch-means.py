# /// case
# title = "The losses of micro-batches are not divided"
# category = "accumulation"
# kind = "unscaled-accumulation"
# severity = "warning"
# names = ["loss", "gradient_accumulation_steps"]
# symptom = "the gradient grows with the number of micro-batches"
# symptom_check = "not torch.allclose(trainer.used[0], reference, atol=1e-6)"
# cause = "means are summed over the window"
# fix = "divide by the number of micro-batches"
# evidence = [
#     { url = "https://github.com/agokrani/distillKitPlus/issues/5", title = "Normalize Loss by Gradient Accumulation Steps Absent" },
#     { url = "https://github.com/fredzzhang/atlas/pull/26", title = "normalise the loss by the number of accumulation steps" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class DistillTrainer:
    def __init__(self, student, teacher, temperature=2.0, alpha=0.7, gradient_accumulation_steps=4, lr=0.05):
        self.student, self.teacher = student, teacher.eval().requires_grad_(False)
        self.t, self.alpha = temperature, alpha
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.optimizer = torch.optim.SGD(student.parameters(), lr=lr)
        self.used = []

    def compute_loss(self, x, y):
        logits = self.student(x)
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / self.t, dim=-1)
        kd = F.kl_div(F.log_softmax(logits / self.t, dim=-1), target, reduction="batchmean") * self.t ** 2
        return self.alpha * kd + (1 - self.alpha) * F.cross_entropy(logits, y)

    def training_step(self, x, y):
        loss = self.compute_loss(x, y)
        loss.backward()  #- here
#+         (loss / self.gradient_accumulation_steps).backward()
        return loss.item()

    def train(self, batches):
        for i, (x, y) in enumerate(batches, start=1):
            self.training_step(x, y)
            if i % self.gradient_accumulation_steps == 0:
                self.used.append(self.student[0].weight.grad.clone())
                self.optimizer.step()  #! also
                self.optimizer.zero_grad()


torch.manual_seed(14)
make = lambda width: nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 5))
trainer = DistillTrainer(make(6), make(32))
batches = [(torch.randn(10, 8), torch.randint(0, 5, (10,))) for _ in range(12)]
whole = torch.cat([b[0] for b in batches[:4]]), torch.cat([b[1] for b in batches[:4]])
reference = torch.autograd.grad(trainer.compute_loss(*whole), trainer.student[0].weight)[0]
trainer.train(batches)
print(trainer.used[0].norm().item(), reference.norm().item())
