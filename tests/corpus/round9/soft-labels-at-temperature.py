# /// case
# title = "kl_div is given the student's probabilities instead of their logarithm"
# category = "loss"
# kind = "kl-div-of-probabilities"
# kinds_also_ok = ["kl-div-expects-log-probabilities", "missing-log-softmax", "negative-kl"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["kl_div", "softmax", "soft"]
# symptom = "the divergence is negative"
# symptom_check = "soft.item() < 0"
# cause = "kl_div takes its first argument as logarithms of probabilities; with probabilities it is no divergence, and its gradient is wrong."
# fix = "F.log_softmax for the student"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def network(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5))


def accuracy(model, data):
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in data) / len(data.dataset)


def train_teacher(model, data, epochs=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model.eval().requires_grad_(False)


class DistillationLoss(nn.Module):
    def __init__(self, temperature=3.0, weight=0.7):
        super().__init__()
        self.temperature, self.weight = temperature, weight

    def forward(self, student, teacher, labels):
        hard = F.cross_entropy(student, labels)
        soft = F.kl_div(  #! here
            F.softmax(student / self.temperature, dim=1),  #- here
#+             F.log_softmax(student / self.temperature, dim=1),
            F.softmax(teacher / self.temperature, dim=1),
            reduction="batchmean",
        ) * self.temperature ** 2
        return (1 - self.weight) * hard + self.weight * soft, soft


torch.manual_seed(53)
labels = torch.randint(0, 5, (200,))
inputs = 1.5 * torch.randn(5, 8)[labels] + torch.randn(200, 8)
data = DataLoader(TensorDataset(inputs, labels), batch_size=50, shuffle=True)
teacher = train_teacher(network(48), data)
student = network(10)
criterion = DistillationLoss()
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for epoch in range(4):
    for x, y in data:
        loss, soft = criterion(student(x), teacher(x), y)  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{loss.item():.3f}", f"soft {soft.item():.3f}", accuracy(student, data))
