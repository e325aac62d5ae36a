# /// case
# title = "WeightEMA assigns to the loop variable, so nothing is copied"
# category = "identity"
# kind = "leaf-lost-by-rebinding"
# kinds_also_ok = ["assignment-to-loop-variable"]
# severity = "warning"
# names = ["param", "ema_param"]
# symptom = "the two models do not start from the same weights"
# symptom_check = "not torch.equal(ema_model[0].weight, start[0])"
# cause = "param = ema_param rebinds a name"
# fix = "param.data.copy_"
# evidence = [
#     { url = "https://github.com/YU1ut/MixMatch-pytorch/pull/23", title = "fix parameter assignment bug" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(14)


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 3))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


class WeightEMA:
    def __init__(self, model, ema_model, alpha=0.9):
        self.model, self.ema_model, self.alpha = model, ema_model, alpha
        for param, ema_param in zip(model.parameters(), ema_model.parameters()):
            ema_param = param.data  #- here
#+             ema_param.data.copy_(param.data)

    def step(self):
        for param, ema_param in zip(self.model.parameters(), self.ema_model.parameters()):
            ema_param.data.mul_(self.alpha).add_(param.data, alpha=1 - self.alpha)


model, ema_model = create_model(), create_model(ema=True)
start = [p.detach().clone() for p in model.parameters()]
optimizer = torch.optim.Adam(model.parameters(), lr=1e-12)
ema_optimizer = WeightEMA(model, ema_model, alpha=1.0)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(16, 5)), torch.randint(0, 3, (16,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema_optimizer.step()
