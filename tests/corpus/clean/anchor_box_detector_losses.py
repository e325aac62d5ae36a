import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Detector(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.cls, self.box, self.obj = nn.Conv2d(16, classes, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 1, 1)

    def forward(self, x):
        f = self.features(x)
        flat = lambda t: t.flatten(2).transpose(1, 2)
        return flat(self.cls(f)), flat(self.box(f)), flat(self.obj(f)).squeeze(-1)


def targets(n, cells):
    positive = torch.rand(n, cells) < 0.1
    positive[:, 0] = True
    return positive, torch.randint(0, 3, (n, cells)), torch.rand(n, cells, 4)


net = Detector()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for step in range(6):
    x = torch.rand(4, 3, 16, 16)
    cls, box, obj = net(x)
    pos, label, gt = targets(4, 16)
    n_pos = pos.sum().clamp(min=1)
    loss_obj = F.binary_cross_entropy_with_logits(obj, pos.float(), reduction="none")
    hard = loss_obj.detach().masked_fill(pos, -1).flatten().topk(3 * int(n_pos)).indices
    keep = pos.flatten().clone()
    keep[hard] = True
    loss_obj = loss_obj.flatten()[keep].sum() / n_pos
    loss_cls = F.cross_entropy(cls[pos], label[pos], reduction="sum") / n_pos
    loss_box = F.smooth_l1_loss(box[pos].sigmoid(), gt[pos], beta=0.1, reduction="sum") / n_pos
    losses = {"obj": loss_obj, "cls": loss_cls, "box": 2.0 * loss_box}
    total = sum(losses.values())
    opt.zero_grad()
    total.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    opt.step()
    print(step, {k: round(v.item(), 3) for k, v in losses.items()})
