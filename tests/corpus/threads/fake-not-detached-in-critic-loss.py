# /// case
# title = "The critic's loss runs back into the generator, whose gradient is not cleared before its own step"
# category = "other-loss"
# kind = "other-loss-in-gradient"
# kinds_also_ok = ["missing-detach", "gradient-doubled", "second-backward-freed-graph"]
# severity = "warning"
# names = ["fake", "detach"]
# symptom = "the generator steps with the critic's loss in its gradient"
# symptom_check = "not torch.allclose(seen, alone)"
# cause = "fake is not detached in d_loss and G is cleared at the turn's start only"
# fix = "detach"
# evidence = [
#     { url = "https://github.com/speechbrain/speechbrain/issues/1492", title = "MetricGAN+ generator backward issue" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(4)
G = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 5))
C = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
g_opt = torch.optim.SGD(G.parameters(), lr=1e-5)
c_opt = torch.optim.SGD(C.parameters(), lr=1e-5)

for it in range(5):
    g_opt.zero_grad()
    c_opt.zero_grad()
    real = torch.randn(24, 5)
    fake = G(torch.randn(24, 3))
    c_loss = C(fake).mean() - C(real).mean()  #- here
#+     c_loss = C(fake.detach()).mean() - C(real).mean()
    c_loss.backward(retain_graph=True)  #! also
    c_opt.step()
    g_loss = -C(G(torch.randn(24, 3))).mean()
    alone = torch.autograd.grad(g_loss, G[0].weight, retain_graph=True)[0]
    g_loss.backward()
    seen = G[0].weight.grad.clone()
    g_opt.step()  #! also
print(c_loss.item(), g_loss.item())
