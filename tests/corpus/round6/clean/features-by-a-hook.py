import torch
import torch.nn as nn


class Tap:
    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.value = output

    def close(self):
        self.handle.remove()
        self.value = None


torch.manual_seed(32)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
taps = Tap(teacher[1]), Tap(student[1])
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for it in range(10):
    x = torch.randn(48, 8)
    with torch.no_grad():
        goal = teacher(x).softmax(1)
    loss = nn.functional.cross_entropy(student(x), goal) + (taps[1].value - taps[0].value).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
for tap in taps:
    tap.close()
print(loss.item())
