# /// case
# category = "gradient"
# kind = "other-loss-in-gradient"
# severity = "warning"
# names = ["critic", "opt_c"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
for step in range(4):
    noise = torch.randn(32, 2)
    opt_g.zero_grad()
    g_loss = -critic(gen(noise)).mean()
    g_loss.backward()  #! also
    opt_g.step()
    real = torch.randn(32, 2) + 3
    c_loss = critic(gen(noise).detach()).mean() - critic(real).mean()
#+     opt_c.zero_grad()
    c_loss.backward()  #! here
    opt_c.step()  #! also
    opt_c.zero_grad()
    print(step, g_loss.item(), c_loss.item())
