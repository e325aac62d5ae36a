# /// case
# title = "scaler.update() is missing"
# category = "amp"
# kind = "gradscaler-misuse"
# severity = "error"
# names = ["scaler"]
# difficulty = "easy"
# symptom = "RuntimeError in iteration 2: step() has already been called since the last update()"
# raises = "RuntimeError"
# raises_message = "has already been called since the last update()"
# cause = "GradScaler keeps per-optimizer state until update()"
# fix = "scaler.update() after scaler.step()"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/4148" },
#     { url = "https://github.com/huggingface/accelerate/issues/357" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Linear(6, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
for step in range(3):
    x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)  #! here
#+     scaler.update()
print(loss.item())
