# /// case
# title = "requires_grad is set on a module"
# category = "flags"
# kind = "requires-grad-on-module"
# kinds_also_ok = ["freeze-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad"]
# symptom = "the backbone trains"
# symptom_check = "not torch.equal(model.backbone[0].weight, pretrained()[0].weight)"
# cause = "the attribute of a module means nothing"
# fix = "requires_grad_(False)"
# evidence = [
#     { url = "https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18", title = "Implementation bug? It seems like the last layer is not frozen?" },
#     { url = "https://github.com/catalyst-team/catalyst/issues/79", title = "[solved] ResnetEncoder 'frozen' argument doesn't work" },
# ]
# ///
import torch
import torch.nn as nn


def pretrained():
    torch.manual_seed(100)
    return nn.Sequential(nn.Conv1d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten())


class Classifier(nn.Module):
    def __init__(self, n_classes=3, finetune=False):
        super().__init__()
        self.backbone = pretrained()
        if not finetune:
            self.backbone.requires_grad = False  #- here
#+             self.backbone.requires_grad_(False)
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


model = Classifier(finetune=False)
opt = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05, momentum=0.9)  #! also
x, y = torch.randn(48, 1, 30), torch.randint(0, 3, (48,))
for epoch in range(4):
    for i in range(0, 48, 16):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x[i:i + 16]), y[i:i + 16])
        loss.backward()
        opt.step()
    print(epoch, loss.item())
