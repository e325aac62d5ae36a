# /// case
# title = "TD target computed by the same network without no_grad"
# category = "rl-ssl-stopgrad"
# kind = "missing-detach"
# severity = "warning"
# names = ["target"]
# difficulty = "hard"
# symptom = "silent: the gradient also flows through the target"
# symptom_check = "target.requires_grad"
# cause = "the bootstrapped target must be a constant"
# fix = "with torch.no_grad():"
# evidence = [
#     { url = "https://github.com/philtabor/Deep-Q-Learning-Paper-To-Code/issues/9" },
#     { url = "https://github.com/datawhalechina/easy-rl/pull/117" },
#     { url = "https://github.com/Farama-Foundation/Gymnasium/issues/1494" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
qnet = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(qnet.parameters(), lr=1e-3)
GAMMA = 0.95
for step in range(6):
    s, s2 = torch.randn(24, 4), torch.randn(24, 4)
    a, r = torch.randint(0, 3, (24, 1)), torch.randn(24)
    q = qnet(s).gather(1, a).squeeze(1)
    target = r + GAMMA * qnet(s2).max(1).values  #- here
#+     with torch.no_grad():
#+         target = r + GAMMA * qnet(s2).max(1).values
    td = nn.functional.smooth_l1_loss(q, target)  #! also
    opt.zero_grad()
    td.backward()
    opt.step()
print(td.item())
