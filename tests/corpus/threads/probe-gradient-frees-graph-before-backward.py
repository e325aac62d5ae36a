# /// case
# title = "autograd.grad() for logging frees the graph before backward()"
# category = "cause"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["grad", "probe"]
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the first grad() call frees the saved tensors"
# fix = "retain_graph=True in the first call"
# evidence = [
#     { url = "https://github.com/learnables/learn2learn/issues/381", title = "Is LearnableOptimizer compatible with MAML?" },
#     { url = "https://github.com/sdv-dev/CTGAN/issues/37", title = "Retention of gradient penalty Graph" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
encoder = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
head_a, head_b = nn.Linear(12, 3), nn.Linear(12, 1)
params = [p for m in (encoder, head_a, head_b) for p in m.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)


def gradient_norm(loss, weight):
    (g,) = torch.autograd.grad(loss, weight)  #- here
#+     (g,) = torch.autograd.grad(loss, weight, retain_graph=True)
    return g.norm().item()


history = []
for step in range(4):
    x = torch.randn(32, 6)
    h = encoder(x)
    cls = nn.functional.cross_entropy(head_a(h), torch.randint(0, 3, (32,)))
    reg = head_b(h).pow(2).mean()
    history.append(gradient_norm(cls, encoder[0].weight))  #! also
    opt.zero_grad()
    (cls + reg).backward()  #! also
    opt.step()
print(history)
