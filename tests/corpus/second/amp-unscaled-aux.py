# /// case
# title = "One of two losses is backpropagated without scaler.scale()"
# category = "amp"
# kind = "gradscaler-misuse"
# severity = "warning"
# names = ["scaler", "aux"]
# difficulty = "hard"
# symptom = "silent: the auxiliary gradients are divided by the scale although they were never multiplied"
# symptom_check = "drift < 1e-3"
# cause = "scaler.step unscales every gradient of the optimizer"
# fix = "scaler.scale(aux).backward()"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/4148" },
#     { url = "https://github.com/nerfstudio-project/nerfacc/issues/307" },
#     { url = "https://github.com/ashawkey/stable-dreamfusion/issues/158" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(11)
detector = nn.Sequential(nn.Linear(5, 25), nn.Hardswish(), nn.Linear(25, 2))
prior = nn.Linear(3, 1)
opt = torch.optim.SGD([*detector.parameters(), *prior.parameters()], lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
before = prior.weight.detach().clone()
boxes, hit = torch.randn(48, 5), torch.randint(0, 2, (48,))
shape = torch.rand(48, 3)
for i in range(6):
    loss = nn.functional.cross_entropy(detector(boxes), hit)
    aux = (prior(shape) - shape.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    scaler.scale(loss).backward()
    aux.backward()  #- here
#+     scaler.scale(aux).backward()
    scaler.step(opt)  #! also
    scaler.update()
drift = (prior.weight - before).norm().item()
print(drift)
