# /// case
# title = "A frozen backbone's batch statistics move on"
# category = "mode"
# kind = "frozen-batchnorm-updates"
# kinds_also_ok = ["freeze-without-effect"]
# severity = "warning"
# names = ["BatchNorm2d", "train"]
# symptom = "the backbone's outputs change in evaluation though it is frozen"
# symptom_check = "(backbone[1].running_mean - reference).abs().max() > 0.1"
# cause = "requires_grad=False does not stop running statistics"
# fix = "backbone.eval()"
# ///
import torch
import torch.nn as nn

torch.manual_seed(53)


class SegHead(nn.Module):
    def __init__(self, backbone, ch, classes):
        super().__init__()
        self.backbone = backbone
        self.classify = nn.Conv2d(ch, classes, 1)
        for p in self.backbone.parameters():  #! also
            p.requires_grad = False  #! also

    def forward(self, x):
        return self.classify(self.backbone(x))


backbone = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
with torch.no_grad():
    for _ in range(20):
        backbone(torch.randn(8, 3, 10, 10))
reference = backbone[1].running_mean.clone()
model = SegHead(backbone, 8, 4)
opt = torch.optim.SGD(model.classify.parameters(), lr=0.1)
images = 2 + 0.5 * torch.randn(24, 3, 10, 10)
masks = torch.randint(0, 4, (24, 10, 10))
for epoch in range(3):
    model.train()  #! here
#+     model.backbone.eval()
    for x, y in zip(images.split(8), masks.split(8)):
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
print(loss.item(), (backbone[1].running_mean - reference).abs().max().item())
