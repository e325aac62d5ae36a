import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(57)
teacher = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4)).eval().requires_grad_(False)
student = nn.Linear(6, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
t = 2.0
for _ in range(8):
    x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / t, -1), F.softmax(teacher(x) / t, -1), reduction="batchmean") * t * t
    loss = 0.7 * soft + 0.3 * F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
