import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(26)
teacher = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 4)).eval()
student = nn.Linear(6, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
T = 3.0
for it in range(15):
    x = torch.randn(64, 6)
    with torch.no_grad():
        goal = F.log_softmax(teacher(x) / T, -1)
    out = student(x)
    soft = F.kl_div(F.log_softmax(out / T, -1), goal, reduction="batchmean", log_target=True) * T * T
    hard = F.cross_entropy(out, goal.argmax(-1))
    loss = 0.8 * soft + 0.2 * hard
    opt.zero_grad()
    loss.backward()
    opt.step()
print(soft.item(), hard.item())
