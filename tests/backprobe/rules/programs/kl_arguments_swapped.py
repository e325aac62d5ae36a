"""BP868 kl-arguments-swapped."""

PROGRAMS = {
    "logarithms on both sides, by the module, in a trainer": """
import torch
from torch import nn

class Distil:
    def __init__(self, teacher, student):
        self.teacher, self.student = teacher, student
        self.criterion = nn.KLDivLoss(reduction="batchmean", log_target=True)
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)

    def step(self, images, labels):
        with torch.no_grad():
            wanted = self.teacher(images).log_softmax(dim=1)
        logits = self.student(images)
        soft = self.criterion(wanted, logits.log_softmax(dim=1))  # <- BP868
        loss = 0.5 * soft + 0.5 * nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

distil = Distil(nn.Linear(6, 4), nn.Linear(6, 4))
for _ in range(4):
    distil.step(torch.randn(8, 6), torch.randint(0, 4, (8,)))
""",
    "the teacher is the running average of the student": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

student = nn.Linear(5, 3)
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 5)
    guess = F.softmax(student(x + 0.1 * torch.randn_like(x)), dim=-1)
    wanted = F.log_softmax(teacher(x), dim=-1)
    loss = F.kl_div(wanted, guess, reduction="batchmean")  # <- BP868
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(teacher.parameters(), student.parameters()):
            p.lerp_(q, 0.01)
""",
    "towards a uniform prior": """
import torch
import torch.nn.functional as F
from torch import nn

encoder, decoder = nn.Linear(6, 4), nn.Linear(4, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
prior = torch.full((4,), 0.25).log()
for _ in range(4):
    x = torch.rand(8, 6)
    q = encoder(x).softmax(-1)
    loss = (decoder(q) - x).pow(2).mean() + F.kl_div(prior.expand_as(q), q, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a policy is kept near the one that it began as": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

policy = nn.Linear(5, 3)
reference = copy.deepcopy(policy).eval().requires_grad_(False)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(8, 5)
    log_p, log_ref = policy(x).log_softmax(-1), reference(x).log_softmax(-1)
    action = torch.distributions.Categorical(logits=log_p).sample()
    reward = x.gather(1, action[:, None]).squeeze(1)
    gain = (log_p.gather(1, action[:, None]).squeeze(1) * (reward - reward.mean())).mean()
    loss = -gain + 0.1 * F.kl_div(log_ref, log_p, log_target=True, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "both ways": """
import torch
import torch.nn.functional as F
from torch import nn

student, teacher = nn.Linear(5, 3), nn.Linear(5, 3).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(8, 5)
    p, q = teacher(x).log_softmax(-1), student(x).log_softmax(-1)
    there = F.kl_div(q, p, log_target=True, reduction="batchmean")
    back = F.kl_div(p, q, log_target=True, reduction="batchmean")
    optimizer.zero_grad()
    (there + back).backward()
    optimizer.step()
""",
}
