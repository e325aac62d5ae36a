import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher_net, student_net = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)
teacher_net.requires_grad_(False)
opt = torch.optim.SGD(student_net.parameters(), lr=0.1)


def distil(images):
    with torch.no_grad():
        teacher = F.softmax(teacher_net(images), dim=1)
    student = F.log_softmax(student_net(images), dim=1)
    return F.kl_div(student, teacher, reduction="batchmean") / images[0, 0].numel()


for _ in range(6):
    divergence = distil(torch.rand(2, 3, 8, 8))
    opt.zero_grad()
    divergence.backward()
    opt.step()
    print(divergence.item())
