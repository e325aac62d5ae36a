# /// case
# title = "backward(torch.zeros_like(loss)) to silence 'grad can be implicitly created only for scalar outputs'"
# category = "root"
# kind = "grad-output-mismatch"
# kinds_also_ok = ["wrong-gradient-argument", "zero-gradient-seed"]
# severity = "warning"
# names = ["zeros_like", "backward"]
# symptom = "all gradients are exactly zero"
# symptom_check = "all(float(p.grad.abs().sum()) == 0 for p in model.parameters())"
# cause = "the seed gradient is zero"
# fix = "ones_like"
# evidence = [
#     { url = "https://github.com/WisconsinAIVision/MaskPoint/issues/7", title = "RuntimeError: grad can be implicitly created only for scalar outputs" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(9)
model = nn.Sequential(nn.Linear(3, 10), nn.Sigmoid(), nn.Linear(10, 2))
opt = torch.optim.Adagrad(model.parameters(), lr=0.1)
inputs = torch.rand(50, 3)
targets = torch.stack([inputs.sum(1), inputs.prod(1)], dim=1)

log = []
for i in range(30):
    outputs = model(inputs)
    squared = (outputs - targets) ** 2
    per_sample = squared.mean(dim=1)
    opt.zero_grad()
    per_sample.backward(torch.zeros_like(per_sample))  #- here
#+     per_sample.backward(torch.ones_like(per_sample) / len(per_sample))
    opt.step()  #! also
    log.append(per_sample.mean().item())
print(log[0], log[-1])
