# /// case
# title = "The divergence is averaged over classes as well"
# category = "loss"
# kind = "wrong-reduction"
# severity = "warning"
# names = ["KLDivLoss", "reduction"]
# symptom = "the soft term is smaller by the number of classes than alpha and T say"
# symptom_check = "abs(soft / per_example - 1) > 0.5"
# cause = "KLDivLoss() is a mean over all entries"
# fix = "reduction='batchmean'"
# evidence = [
#     { url = "https://github.com/haitongli/knowledge-distillation-pytorch/issues/2", title = "kd loss" },
#     { url = "https://github.com/neuralmagic/sparseml/pull/592", title = "fixing reduction in teacher distillation function" },
# ]
# ///
import warnings
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
params = SimpleNamespace(alpha=0.9, temperature=4.0, learning_rate=1e-2, num_epochs=4, classes=20)


def loss_fn_kd(outputs, labels, teacher_outputs, params):
    alpha, T = params.alpha, params.temperature
    soft = nn.KLDivLoss()(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1))  #- here
#+     soft = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1))
    return soft, soft * (alpha * T * T) + F.cross_entropy(outputs, labels) * (1.0 - alpha)  #! also


def net(width):
    return nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, params.classes))


torch.manual_seed(230)
teacher, student = net(128), net(16)
teacher.eval().requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=params.learning_rate)
train_batch, labels_batch = torch.randn(80, 12), torch.randint(0, params.classes, (80,))
for epoch in range(params.num_epochs):
    for idx in torch.randperm(80).split(20):
        output = student(train_batch[idx])
        with torch.no_grad():
            output_teacher = teacher(train_batch[idx])
        soft, loss = loss_fn_kd(output, labels_batch[idx], output_teacher, params)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
T = params.temperature
p = F.softmax(output_teacher / T, 1)
per_example = (p * (p.log() - F.log_softmax(output.detach() / T, 1))).sum(1).mean().item()
soft = soft.item()
print(soft, per_example)
