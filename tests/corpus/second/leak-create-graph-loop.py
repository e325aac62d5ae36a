# /// case
# title = "backward(create_graph=True) in a plain training loop"
# category = "retention-leak"
# kind = "backward-create-graph"
# severity = "note"
# names = ["loss"]
# difficulty = "easy"
# symptom = "UserWarning about a reference cycle; p.grad has a grad_fn and memory is not freed"
# symptom_check = "net[0].weight.grad.requires_grad"
# warns = "Using backward() with create_graph=True will create a reference cycle"
# cause = "create_graph makes p.grad part of the graph: parameter -> grad -> graph -> parameter"
# fix = "drop the flag (or use autograd.grad for double backward)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/4661" },
#     { url = "https://github.com/pytorch/pytorch/issues/78622" },
#     { url = "https://github.com/amirgholami/PyHessian/issues/25" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(5):
    noise = torch.randn(16, 4)
    loss = (net(noise) - noise).square().mean()
    opt.zero_grad()
    loss.backward(create_graph=True)  #- here
#+     loss.backward()
    opt.step()
print(loss.item())
