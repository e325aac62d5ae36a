# /// case
# title = "The losses of the tasks are put together by torch.tensor(..., requires_grad=True)"
# category = "graph-break"
# kind = "tensor-rebuilt-from-values"
# kinds_also_ok = ["graph-cut", "torch-tensor-copies-value", "loss-is-new-leaf"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["torch.tensor", "requires_grad"]
# symptom = "no parameter gets a gradient, no exception"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = "torch.tensor copies the values of the three losses, and requires_grad=True only makes the copy a leaf of its own."
# fix = "torch.stack"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)


class Perception(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU())
        self.segment = nn.Conv2d(12, 4, 1)
        self.depth = nn.Conv2d(12, 1, 1)
        self.normal = nn.Conv2d(12, 3, 1)

    def forward(self, image):
        z = self.body(image)
        return self.segment(z), F.softplus(self.depth(z)), F.normalize(self.normal(z), dim=1)


def task_losses(outputs, truth):
    mask, depth, normal = outputs
    return [
        F.cross_entropy(mask, truth["mask"]),
        F.l1_loss(depth, truth["depth"]),
        1 - F.cosine_similarity(normal, truth["normal"]).mean(),
    ]


weights = torch.tensor([1.0, 0.5, 0.5])
net = Perception()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
image = torch.rand(6, 3, 10, 10)
truth = {
    "mask": (image.sum(1) > 1.5).long(),
    "depth": image.mean(1, keepdim=True),
    "normal": F.normalize(torch.randn(6, 3, 10, 10), dim=1),
}
for step in range(10):
    losses = task_losses(net(image), truth)
    total = (weights * torch.tensor(losses, requires_grad=True)).sum()  #- here
#+     total = (weights * torch.stack(losses)).sum()
    optimizer.zero_grad()
    total.backward()  #! also
    optimizer.step()
    print(step, " ".join(f"{value.item():.3f}" for value in losses))
