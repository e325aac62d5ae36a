import copy

import torch
import torch.nn.functional as F
from torch import nn


def build(width=8):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 1, 1),
    )


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(fast, 1 - self.decay)

    def consistency(self, scans):
        with torch.no_grad():
            guess = torch.sigmoid(self.teacher(scans + 0.1 * torch.randn_like(scans)))
        return F.mse_loss(torch.sigmoid(self.student(scans + 0.1 * torch.randn_like(scans))), guess)


def scans_with_lesions(n, size=16):
    masks = torch.zeros(n, 1, size, size)
    for mask, (r, c) in zip(masks, torch.randint(2, size - 6, (n, 2)).tolist()):
        mask[0, r:r + 4, c:c + 4] = 1
    return masks + 0.5 * torch.randn_like(masks), masks


torch.manual_seed(1)
labelled, masks = scans_with_lesions(32)
unlabelled, _ = scans_with_lesions(96)
student = build()
mean_teacher = MeanTeacher(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
steps = 40
for step in range(steps):
    ramp = min(1.0, step / 20)
    few, many = torch.randint(0, 32, (8,)), torch.randint(0, 96, (8,))
    supervised = F.binary_cross_entropy_with_logits(student(labelled[few]), masks[few])
    loss = supervised + ramp * mean_teacher.consistency(unlabelled[many])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_teacher.follow()
    if step % 10 == 9:
        print(step, round(supervised.item(), 4))
mean_teacher.teacher.eval()
with torch.no_grad():
    found = mean_teacher.teacher(labelled) > 0
print("agreement", (found == masks.bool()).float().mean().item())
