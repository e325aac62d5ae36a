import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.seg, self.depth = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.enc(x)
        return self.seg(h), self.depth(h)


model = TwoHeads()
opt = torch.optim.Adam(
    [
        {"params": [p for n, p in model.named_parameters() if n != "log_vars"]},
        {"params": [model.log_vars], "lr": 1e-2, "weight_decay": 0.0},
    ],
    lr=1e-3,
    weight_decay=1e-4,
)
for step in range(8):
    img = torch.rand(4, 3, 8, 8)
    label = (img.mean(1) * 4).long().clamp(max=3)
    label[:, 0] = 255
    depth = img[:, :1] * 2
    valid = depth > 0.1
    s, d = model(img)
    l_seg = F.cross_entropy(s, label, ignore_index=255)
    l_depth = (d - depth).abs()[valid].mean()
    losses = torch.stack([l_seg, l_depth])
    precision = torch.exp(-model.log_vars)
    total = (precision * losses + model.log_vars).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
    print(step, l_seg.item(), l_depth.item(), model.log_vars.tolist())
