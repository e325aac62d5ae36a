# /// case
# title = "A warm-up written with integer division keeps the learning rate at 0"
# category = "optimizer-wiring"
# kind = "learning-rate-zero"
# severity = "warning"
# names = ["sched", "opt"]
# difficulty = "medium"
# symptom = "silent: gradients flow, parameters do not move"
# symptom_check = "torch.equal(init, net.weight)"
# cause = "step // WARMUP is 0 for the whole run"
# fix = "(step + 1) / WARMUP"
# evidence = [
#     { url = "https://github.com/facebookresearch/maskrcnn-benchmark/issues/335" },
#     { url = "https://github.com/verl-project/verl/issues/3674" },
# ]
# ///
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(40)
WARMUP = 50
net = nn.Linear(9, 3)
init = net.weight.detach().clone()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)
sched = LambdaLR(opt, lambda step: min(1, (step + 1) // WARMUP))  #- here
#+ sched = LambdaLR(opt, lambda step: min(1.0, (step + 1) / WARMUP))
for step in range(30):
    x = torch.randn(16, 9)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
    sched.step()
print(loss.item(), sched.get_last_lr())
