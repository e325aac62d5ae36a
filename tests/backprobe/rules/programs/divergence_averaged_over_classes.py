"""BP849 divergence-averaged-over-classes."""

PROGRAMS = {
    "in another shape": """
import torch
import torch.nn.functional as F
from torch import nn

class Distil:
    def __init__(self, teacher, student, t=2.0):
        self.teacher, self.student, self.t = teacher, student, t
        self.criterion = nn.KLDivLoss(reduction="mean")
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def step(self, x):
        with torch.no_grad():
            wanted = F.softmax(self.teacher(x) / self.t, dim=-1)
        loss = self.criterion(F.log_softmax(self.student(x) / self.t, dim=-1), wanted) * self.t**2  # <- BP849
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

distil = Distil(nn.Linear(5, 7), nn.Linear(5, 7))
for _ in range(4):
    distil.step(torch.randn(8, 5))
""",
    "right: what looks like it": """
import torch
import torch.nn.functional as F
from torch import nn

student, teacher = nn.Linear(5, 7), nn.Linear(5, 7).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 5)
    logs, wanted = student(x).log_softmax(-1), teacher(x).softmax(-1)
    loss = F.kl_div(logs, wanted, reduction="sum") / len(x)
    with torch.no_grad():
        shown = F.kl_div(logs, wanted).item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: times the number of classes": """
import torch
from torch import nn

model = nn.Linear(4, 10)
criterion = nn.KLDivLoss(reduction="mean")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    wanted = torch.rand(8, 10).softmax(1)
    loss = criterion(model(x).log_softmax(1), wanted) * wanted.size(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: times the classes, which are the second dimension": """
import torch
from torch import nn

model = nn.Conv1d(4, 5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4, 7):
    wanted = torch.rand(8, 5, 7).softmax(1)
    loss = 5 * nn.functional.kl_div(model(x).log_softmax(1), wanted, reduction="mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
