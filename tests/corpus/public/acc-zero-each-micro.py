# /// case
# title = "zero_grad() in each micro-step of gradient accumulation"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# severity = "warning"
# names = ["opt"]
# difficulty = "medium"
# symptom = "silent: only the last micro-batch of each group reaches the optimizer"
# symptom_check = "len(dropped) > 0"
# cause = "the clearing belongs after step()"
# fix = "zero_grad() only after step()"
# evidence = [
#     { url = "https://github.com/bytetriper/RAE/issues/67" },
#     { url = "https://github.com/huggingface/accelerate/issues/1299" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(18)
EVERY = 4
net = nn.Linear(6, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.03)
dropped = []
opt.zero_grad()
for step in range(1, 17):
    xb = torch.randn(5, 6)
    yb = xb.mean(1, keepdim=True)
    if net.weight.grad is None and (step - 1) % EVERY:
        dropped.append(step)
    loss = nn.functional.mse_loss(net(xb), yb) / EVERY
    loss.backward()  #! also
    if step % EVERY == 0:
        opt.step()
    opt.zero_grad()  #- here
#+         opt.zero_grad()
print(loss.item(), dropped)
