# /// case
# title = "kl_div gets the student's probabilities"
# category = "loss"
# kind = "kl-div-without-log"
# kinds_also_ok = ["wrong-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["student", "kl_div"]
# symptom = "the distillation loss is no divergence, and can be negative"
# symptom_check = "(student >= 0).all().item()"
# cause = "kl_div expects log-probabilities as input"
# fix = "log_softmax for the student"
# evidence = [
#     { url = "https://github.com/microsoft/ProDA/issues/20", title = "question about the loss formulation of kl_div" },
#     { url = "https://github.com/microsoft/ProDA/issues/43", title = "The kl_div loss of self distillation" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(39)


class SegNet(nn.Module):
    def __init__(self, classes=5, width=12):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.classifier = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        feat = self.body(x)
        return {"feat": feat, "out": self.classifier(feat)}


class Adaptation:
    def __init__(self, student, teacher, distillation):
        self.BaseNet, self.teacher, self.distillation = student, teacher, distillation
        self.teacher.eval().requires_grad_(False)
        self.optim = torch.optim.SGD(student.parameters(), lr=2e-2, momentum=0.9)

    def step(self, source, label, target, target_aug, pseudo):
        loss = F.cross_entropy(self.BaseNet(source)["out"], label)
        target_out = self.BaseNet(target_aug)
        loss = loss + F.cross_entropy(target_out["out"], pseudo, ignore_index=250)
        if self.distillation > 0:
            student = F.softmax(target_out["out"], dim=1)  #- here
#+             student = F.log_softmax(target_out["out"], dim=1)
            with torch.no_grad():
                teacher = F.softmax(self.teacher(target)["out"], dim=1)
            loss_kd = F.kl_div(student, teacher, reduction="none").sum(1)  #! also
            mask = (pseudo != 250).float()
            loss_kd = (loss_kd * mask).sum() / mask.sum()
            loss = loss + self.distillation * loss_kd
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return student.detach(), loss_kd.item()


model = Adaptation(SegNet(), SegNet(), distillation=1.0)
for it in range(5):
    image = torch.randn(2, 3, 8, 8)
    pseudo = torch.randint(0, 5, (2, 8, 8))
    pseudo[:, :2] = 250
    student, kd = model.step(torch.randn(2, 3, 8, 8), torch.randint(0, 5, (2, 8, 8)), image, image + 0.1 * torch.randn_like(image), pseudo)
    print(it, kd)
