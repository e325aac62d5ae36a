# /// case
# title = "Distillation trainer sums the window of micro-batches"
# category = "accumulation"
# kind = "accumulation-not-normalised"
# severity = "warning"
# names = ["gradient_accumulation_steps", "loss"]
# symptom = "the gradient is eight times that of the whole batch"
# symptom_check = "ratio > 6"
# cause = "mean losses are summed"
# fix = "divide by the number of micro-batches"
# evidence = [
#     { url = "https://github.com/agokrani/distillKitPlus/issues/5", title = "Normalize Loss by Gradient Accumulation Steps Absent" },
#     { url = "https://github.com/hirofumi0810/neural_sp/issues/168", title = "accum_grad loss error" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Args:
    micro_batch: int = 4
    gradient_accumulation_steps: int = 8
    temperature: float = 2.0
    alpha: float = 0.5
    lr: float = 0.05


class LogitsTrainer:
    def __init__(self, student, teacher, args):
        self.student, self.teacher, self.args = student, teacher.eval(), args
        self.optimizer = torch.optim.SGD(student.parameters(), lr=args.lr)
        self.logged = []

    def compute_loss(self, x, y):
        logits = self.student(x)
        with torch.no_grad():
            soft = self.teacher(x)
        t = self.args.temperature
        kd = F.kl_div(F.log_softmax(logits / t, -1), F.softmax(soft / t, -1), reduction="batchmean") * t * t
        return self.args.alpha * kd + (1 - self.args.alpha) * F.cross_entropy(logits, y)

    def step(self, x, y):
        self.optimizer.zero_grad()
        running = 0.0
        micro = zip(x.split(self.args.micro_batch), y.split(self.args.micro_batch))
        for mx, my in micro:
            loss = self.compute_loss(mx, my)  #! here
#+             loss = loss / self.args.gradient_accumulation_steps
            loss.backward()  #! here
            running += loss.item()
        self.optimizer.step()  #! also
        self.logged.append(running)


torch.manual_seed(3)
args = Args()
student, teacher = nn.Linear(12, 5), nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
trainer = LogitsTrainer(student, teacher, args)
for _ in range(3):
    x = torch.randn(args.micro_batch * args.gradient_accumulation_steps, 12)
    y = torch.randint(0, 5, (len(x),))
    whole = torch.autograd.grad(trainer.compute_loss(x, y), student.weight)[0]
    trainer.step(x, y)
ratio = (student.weight.grad.norm() / whole.norm()).item()
print(trainer.logged, ratio)
