# /// case
# title = "Gradients of activations are read without retain_grad"
# category = "leaf"
# kind = "grad-of-non-leaf"
# kinds_also_ok = ["missing-retain-grad", "grad-is-none"]
# severity = "warning"
# names = ["activations", "grad", "capture"]
# symptom = "the monitor sees no gradient of any layer"
# symptom_check = "len(monitor.history) == 0"
# cause = ".grad of tensors that are no leaves is not kept"
# fix = "retain_grad"
# ///
import torch
import torch.nn as nn


class GradientMonitor:
    def __init__(self, model, kinds=(nn.Linear,)):
        self.activations, self.history = {}, []
        for name, module in model.named_modules():
            if isinstance(module, kinds):
                module.register_forward_hook(self.capture(name))

    def capture(self, name):
        def hook(module, args, output):
#+             output.retain_grad()
            self.activations[name] = output  #! here
        return hook

    def collect(self):
        norms = {}
        for name, value in self.activations.items():
            if value.grad is not None:  #! also
                norms[name] = value.grad.norm().item()  #! also
        if norms:
            self.history.append(norms)
        self.activations.clear()


torch.manual_seed(43)
model = nn.Sequential(nn.Linear(9, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
monitor = GradientMonitor(model)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x = torch.randn(50, 9)
y = x.square().sum(1, keepdim=True).sqrt()
for step in range(10):
    loss = nn.functional.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    monitor.collect()
    optimizer.step()
print(loss.item(), monitor.history[-1] if monitor.history else "nothing recorded")
