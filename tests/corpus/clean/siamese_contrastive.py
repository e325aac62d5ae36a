import torch
from torch import nn

torch.manual_seed(0)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, a, b):
        return nn.functional.pairwise_distance(self.embed(a), self.embed(b))


net = Siamese()
opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.7)
for epoch in range(3):
    for a in torch.randn(3, 14, 9):
        same = torch.randint(0, 2, (14,)).float()
        b = torch.where(same[:, None] > 0, a + 0.1 * torch.randn_like(a), torch.randn_like(a))
        d = net(a, b)
        loss = (same * d.pow(2) + (1 - same) * (1 - d).clamp(min=0).pow(2)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    schedule.step()
print(loss.item())
