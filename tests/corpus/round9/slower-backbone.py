# /// case
# title = "The hooks that scale the backbone's gradients are registered again in each epoch"
# category = "hook"
# kind = "hook-registered-each-epoch"
# kinds_also_ok = ["hooks-pile-up", "hook-not-removed", "duplicate-hooks"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "slow_down", "epoch"]
# symptom = "the backbone's gradients are multiplied by 0.1 once more in each epoch, to 0.00001 in the fifth"
# symptom_check = "max(len(p._backward_hooks) for p in tuner.model.backbone.parameters()) > 1"
# cause = "Hooks stay until they are removed, and slow_down, which adds one to each parameter, is called in each epoch."
# fix = "register the hooks once, in __init__"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(10, 28), nn.ReLU(), nn.Linear(28, 14), nn.ReLU())
        self.prototypes = nn.Parameter(torch.randn(classes, 14))

    def forward(self, x):
        return 8 * F.normalize(self.backbone(x), dim=1) @ F.normalize(self.prototypes, dim=1).T


class Finetuner:
    def __init__(self, model, data, backbone_factor=0.1, lr=0.3):
        self.model, self.data = model, data
        self.backbone_factor = backbone_factor
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)  #! here
#+         self.slow_down()

    def slow_down(self):
        for parameter in self.model.backbone.parameters():
            parameter.register_hook(lambda grad: grad * self.backbone_factor)  #! here

    def epoch(self, size=40):
        self.model.train()
        self.slow_down()  #- here
        x, y = self.data
        losses = []
        for rows in torch.randperm(len(x)).split(size):
            loss = F.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()  #! also
            self.optimizer.step()  #! also
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def fit(self, epochs):
        for number in range(epochs):
            mean = self.epoch()  #! also
            print(f"epoch {number}: {mean:.4f}")


torch.manual_seed(79)
y = torch.randint(0, 3, (160,))
x = torch.randn(3, 10)[y] + 0.8 * torch.randn(160, 10)
tuner = Finetuner(Model(), (x, y))
tuner.fit(5)
