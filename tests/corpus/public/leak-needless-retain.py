# /// case
# title = "retain_graph=True on every step although each graph is used once"
# category = "retention-leak"
# kind = "needless-retain-graph"
# severity = "note"
# names = ["loss"]
# difficulty = "hard"
# symptom = "silent: saved activations live until the next rebinding of loss; hides real double-backward errors"
# symptom_check = "[bool(loss.grad_fn.next_functions), _second(loss)][1]"
# cause = "the flag was added to silence an error; the graph is never walked again"
# fix = "loss.backward()"
# evidence = [
#     { url = "https://github.com/isds-neu/PeRCNN/issues/3" },
#     { url = "https://github.com/GBLin5566/toward-controlled-generation-of-text-pytorch/issues/9" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(14)
body = nn.Sequential(nn.Linear(3, 30), nn.ELU(), nn.Linear(30, 3))
opt = torch.optim.SGD(body.parameters(), lr=0.05)


def _second(value):
    try:
        torch.autograd.grad(value, body[0].weight, retain_graph=True)
        return True
    except RuntimeError:
        return False


for it in range(10):
    x = torch.randn(20, 3)
    loss = (body(x) - x.flip(1)).abs().mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  #- here
#+     loss.backward()
    if it < 9:
        opt.step()
print(loss.item())
