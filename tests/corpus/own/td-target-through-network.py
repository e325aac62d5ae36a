# /// case
# category = "training"
# kind = "missing-detach"
# severity = "warning"
# names = ["target", "q_next"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
q_net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(q_net.parameters(), lr=1e-3)
for _ in range(4):
    s, s2 = torch.randn(16, 4), torch.randn(16, 4)
    a, r, done = torch.randint(0, 2, (16, 1)), torch.randn(16), torch.zeros(16)
    q = q_net(s).gather(1, a).squeeze(1)
    q_next = q_net(s2).max(1).values  #! also
    target = r + 0.99 * (1 - done) * q_next  #- here
#+     target = r + 0.99 * (1 - done) * q_next.detach()
    loss = nn.functional.smooth_l1_loss(q, target)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
