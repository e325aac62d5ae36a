import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
student = nn.Linear(8, 4)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
T = 3.0
for x in torch.randn(5, 16, 8):
    y = torch.randint(0, 4, (16,))
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)
    logits = student(x)
    loss = 0.7 * T * T * F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") + 0.3 * F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
