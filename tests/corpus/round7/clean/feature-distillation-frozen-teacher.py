import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        h = self.stem(x).mean(dim=(2, 3))
        return self.fc(h), h


torch.manual_seed(111)
teacher, student = Net(16).eval(), Net(4)
for p in teacher.parameters():
    p.requires_grad_(False)
bridge = nn.Linear(4, 16)
optimizer = torch.optim.Adam([*student.parameters(), *bridge.parameters()], lr=5e-3)
images = torch.rand(48, 1, 8, 8)
T = 2.0
for epoch in range(3):
    student.train()
    for x in images.split(12):
        with torch.no_grad():
            t_logits, t_feat = teacher(x)
            hard = t_logits.argmax(1)
        s_logits, s_feat = student(x)
        kd = F.kl_div(F.log_softmax(s_logits / T, 1), F.log_softmax(t_logits / T, 1), reduction="batchmean", log_target=True) * T ** 2
        loss = kd + 0.3 * F.cross_entropy(s_logits, hard) + F.mse_loss(bridge(s_feat), t_feat)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
