import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


def make(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 4))


teacher, student = make(64), make(16)
pre = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(10):
    x = torch.randn(32, 8)
    pre.zero_grad()
    F.cross_entropy(teacher(x), x[:, :4].argmax(1)).backward()
    pre.step()
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
T = 3.0
for _ in range(20):
    x = torch.randn(32, 8)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)
    loss = F.kl_div(F.log_softmax(student(x) / T, dim=1), soft, reduction="batchmean") * T * T
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
