import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.3),
                                  nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(x)).log_softmax(1)


def consistency(student, teacher):
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def rise(step, length=10):
    share = min(step / length, 1.0)
    return float(torch.exp(torch.tensor(-5.0 * (1 - share) ** 2)))


torch.manual_seed(157)
labels = torch.randint(0, 4, (300,))
x = 1.2 * torch.randn(4, 8)[labels] + torch.randn(300, 8)
labelled, unlabelled, held_out = x[:40], x[40:200], x[200:]
student = Net()
teacher = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
teacher.train()
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for step in range(20):
    rows, pool = torch.randint(0, 40, (20,)), torch.randint(0, 160, (40,))
    inputs = torch.cat([labelled[rows], unlabelled[pool]])
    output = student(inputs + 0.1 * torch.randn_like(inputs))
    with torch.no_grad():
        belief = teacher(inputs + 0.1 * torch.randn_like(inputs))
    loss = F.nll_loss(output[:20], labels[:40][rows]) + rise(step) * consistency(output, belief)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    teacher.update_parameters(student)
teacher.eval()
with torch.no_grad():
    accuracy = (teacher(held_out).argmax(1) == labels[200:]).float().mean().item()
print(f"loss {loss.item():.3f} accuracy of the teacher {accuracy:.2f}")
