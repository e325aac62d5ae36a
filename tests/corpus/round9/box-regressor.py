# /// case
# title = "Of two optimizers only the head's clears its gradients"
# category = "accumulation"
# kind = "zero-grad-missing-for-second-optimizer"
# kinds_also_ok = ["gradients-not-cleared", "missing-zero-grad", "stale-gradients"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["backbone_opt", "head_opt", "zero_grad"]
# symptom = "the gradient of the backbone is the sum over all steps so far"
# symptom_check = "norms[-1] > 3 * norms[0]"
# cause = "backbone_opt.zero_grad() is missing."
# fix = "clear both optimizers' gradients"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Detector(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2, padding=1),
            nn.GroupNorm(2, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.ModuleDict({
            "box": nn.Linear(channels * 16, 4),
            "objectness": nn.Linear(channels * 16, 1),
        })

    def forward(self, images):
        features = self.backbone(images)
        return self.head["box"](features).sigmoid(), self.head["objectness"](features).squeeze(1)


def render(count, size=16):
    corner = torch.rand(count, 2) * 0.5
    extent = torch.rand(count, 2) * 0.3 + 0.2
    present = (torch.rand(count) > 0.3).float()
    grid = (torch.arange(size) + 0.5) / size
    inside_x = (grid >= corner[:, :1]) & (grid <= corner[:, :1] + extent[:, :1])
    inside_y = (grid >= corner[:, 1:]) & (grid <= corner[:, 1:] + extent[:, 1:])
    images = (inside_y[:, :, None] & inside_x[:, None, :]).float() * present[:, None, None]
    images = images + 0.05 * torch.randn(count, size, size)
    return images[:, None], torch.cat([corner, corner + extent], 1), present


def detection_loss(outputs, boxes, present, box_weight=5.0):
    predicted, logits = outputs
    box = F.smooth_l1_loss(predicted[present > 0], boxes[present > 0])
    return box_weight * box + F.binary_cross_entropy_with_logits(logits, present)


torch.manual_seed(14)
model = Detector()
backbone_opt = torch.optim.SGD(model.backbone.parameters(), lr=1e-2)  #! also
head_opt = torch.optim.AdamW(model.head.parameters(), lr=2e-3)
images, boxes, present = render(64)
norms = []
for step in range(20):
    loss = detection_loss(model(images), boxes, present)
#+     backbone_opt.zero_grad()
    head_opt.zero_grad()  #! here
    loss.backward()  #! here
    norms.append(nn.utils.get_total_norm([p.grad for p in model.backbone.parameters()]).item())
    backbone_opt.step()  #! here
    head_opt.step()
    if step % 5 == 0:
        print(f"{step:3d} loss {loss.item():.4f} backbone norm {norms[-1]:.3f}")
