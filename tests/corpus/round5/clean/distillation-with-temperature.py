import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
teacher.requires_grad_(False)
student = nn.Linear(8, 5)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
T, alpha = 4.0, 0.7
for step in range(15):
    x, y = torch.randn(32, 8), torch.randint(0, 5, (32,))
    soft = F.softmax(teacher(x) / T, dim=1)
    logits = student(x)
    kd = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
    loss = alpha * kd + (1 - alpha) * F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
