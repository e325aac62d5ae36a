# /// case
# title = "Activation monitor collects hook outputs with their graphs"
# category = "retention-leak"
# kind = "graph-retained-list"
# kinds_also_ok = ["graph-retained", "hook-keeps-graph"]
# severity = "warning"
# names = ["acts", "hook", "out", "monitor"]
# difficulty = "medium"
# symptom = "memory grows with each training step until report() is called"
# symptom_check = "any(t.requires_grad for v in monitor.acts.values() for t in v)"
# cause = "the forward hook appends the output tensors themselves; each of them keeps its step's graph"
# fix = "detach in the hook"
# evidence = [{ url = "https://github.com/growingnet/gromo/issues/135" }, { url = "https://github.com/meta-pytorch/opacus/issues/176" }]
# ///
import torch
from torch import nn


class ActivationMonitor:
    def __init__(self, model, kinds=(nn.ReLU, nn.GELU)):
        self.acts = {}
        self.handles = [
            m.register_forward_hook(self.hook(name))  #! also
            for name, m in model.named_modules() if isinstance(m, kinds)
        ]

    def hook(self, name):
        def record(module, args, out):  #! also
            self.acts.setdefault(name, []).append(out)  #- here
#+             self.acts.setdefault(name, []).append(out.detach())
        return record

    def report(self):
        return {name: torch.cat(outs).le(0).float().mean().item() for name, outs in self.acts.items()}

    def close(self):
        for handle in self.handles:
            handle.remove()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
monitor = ActivationMonitor(model)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(30):
    x = torch.randn(32, 10)
    loss = (model(x).squeeze(1) - x.prod(dim=1)).pow(2).mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
monitor.close()
print(monitor.report())
