# /// case
# title = "A loss entry made with torch.zeros and filled by values, not by operations"
# category = "partial-cut"
# kind = "constant-loss-term"
# kinds_also_ok = ["loss-term-without-gradient"]
# severity = "warning"
# names = ["smooth", "losses"]
# symptom = "the smoothness term has no grad_fn"
# symptom_check = 'losses["smooth"].grad_fn is None'
# cause = "the values are copied out with float() into a fresh tensor"
# fix = "stack the tracked scalars"
# evidence = [
#     { url = "https://github.com/Wuziyi616/multi_part_assembly/issues/4", title = "Including a new loss in the computation graph" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(6)


class Trainer:
    def __init__(self):
        self.net = nn.GRU(3, 10, batch_first=True)
        self.head = nn.Linear(10, 2)
        params = [*self.net.parameters(), *self.head.parameters()]
        self.opt = torch.optim.Adam(params, lr=1e-3)

    def losses(self, x, y):
        track = self.head(self.net(x)[0])
        smooth = torch.zeros(track.size(0))  #- also
        for i, path in enumerate(track):  #-
            smooth[i] = float((path[1:] - path[:-1]).detach().pow(2).sum())  #- here
#+         smooth = torch.stack([(path[1:] - path[:-1]).pow(2).sum() for path in track])
        return {"fit": (track - y).pow(2).mean(), "smooth": smooth.mean()}

    def step(self, x, y):
        losses = self.losses(x, y)
        self.opt.zero_grad()
        (losses["fit"] + 0.1 * losses["smooth"]).backward()  #! also
        self.opt.step()
        return losses


trainer = Trainer()
for _ in range(5):
    losses = trainer.step(torch.randn(4, 7, 3), torch.randn(4, 7, 2))
print({k: v.item() for k, v in losses.items()})
