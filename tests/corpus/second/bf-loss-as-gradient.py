# /// case
# title = "loss.backward(loss): every gradient is multiplied by the loss value"
# category = "backward-flags"
# kind = "wrong-gradient-argument"
# severity = "warning"
# names = ["loss"]
# difficulty = "hard"
# symptom = "silent: effective learning rate shrinks with the loss"
# symptom_check = "abs(net.weight.grad.norm().item() / ref - loss.item()) < 1e-4"
# cause = "the gradient argument is d(final)/d(loss); passing the loss scales all gradients"
# fix = "loss.backward()"
# evidence = [
#     { url = "https://github.com/sotte/pytorch_tutorial/issues/5" },
#     { url = "https://github.com/tanelp/tiny-diffusion/issues/3" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(15)
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(8):
    x = torch.randn(24, 6)
    y = torch.stack([x[:, 0] - x[:, 1], x[:, 2] * 0.5], dim=1)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    ref = torch.autograd.grad(loss, net.weight, retain_graph=True)[0].norm().item()
    loss.backward(loss)  #- here
#+     loss.backward()
    if step < 7:
        opt.step()
print(loss.item())
