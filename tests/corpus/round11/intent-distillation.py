# /// case
# title = "kl_div is given probabilities where it wants log-probabilities"
# category = "loss"
# kind = "kl-div-input-not-log"
# kinds_also_ok = ["kl-div-without-log-softmax", "softmax-instead-of-log-softmax", "wrong-kl-input"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["student", "kl_div", "softmax"]
# symptom = "the soft loss is not zero for equal logits and its gradient pulls to the wrong place"
# symptom_check = "criterion.soft(teacher(test[0]), teacher(test[0])).abs().item() > 1e-2"
# cause = "The first argument of F.kl_div must be log-probabilities."
# fix = "F.log_softmax for the student"
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F


def classifier(features, hidden, intents):
    return nn.Sequential(
        nn.Linear(features, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, intents)
    )


class WeightAverage:
    def __init__(self, model, decay=0.98):
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for averaged, current in zip(self.model.parameters(), model.parameters()):
            averaged.lerp_(current, 1.0 - self.decay)


class Distillation(nn.Module):
    def __init__(self, temperature=3.0, mix=0.7):
        super().__init__()
        self.temperature = temperature
        self.mix = mix

    def soft(self, student_logits, teacher_logits):
        student = F.softmax(student_logits / self.temperature, dim=-1)  #- here
#+         student = F.log_softmax(student_logits / self.temperature, dim=-1)
        teacher = F.softmax(teacher_logits / self.temperature, dim=-1)
        return self.temperature ** 2 * F.kl_div(student, teacher, reduction="batchmean")  #! also

    def hard(self, student_logits, labels):
        return F.cross_entropy(student_logits, labels)

    def forward(self, student_logits, teacher_logits, labels):
        soft = self.soft(student_logits, teacher_logits)
        hard = self.hard(student_logits, labels)
        return self.mix * soft + (1.0 - self.mix) * hard


def utterances(count, centres, noise):
    intent = torch.randint(0, len(centres), (count,))
    return centres[intent] + noise * torch.randn(count, centres.shape[1]), intent


def fit(model, objective, data, steps, lr, on_step=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
    x, y = data
    for step in range(steps):
        rows = torch.randint(0, len(y), (64,))
        loss = objective(model, x[rows], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if on_step is not None:
            on_step(model)
    return model


@torch.no_grad()
def agreement(model, teacher, x, y):
    predicted = model(x).argmax(-1)
    return (predicted == teacher(x).argmax(-1)).float().mean().item(), (predicted == y).float().mean().item()


torch.manual_seed(63)
centres = torch.randn(12, 20)
large, small, test = utterances(2000, centres, 1.6), utterances(240, centres, 1.6), utterances(600, centres, 1.6)
teacher = fit(classifier(20, 128, 12), lambda m, x, y: F.cross_entropy(m(x), y), large, steps=250, lr=2e-3)
teacher.requires_grad_(False).eval()

student = classifier(20, 16, 12)
average = WeightAverage(student)
criterion = Distillation()
fit(
    student,
    lambda m, x, y: criterion(m(x), teacher(x), y),
    small,
    steps=250,
    lr=4e-3,
    on_step=average.update,
)
print("student: agreement %.3f accuracy %.3f" % agreement(student, teacher, *test))
print("average: agreement %.3f accuracy %.3f" % agreement(average.model, teacher, *test))
