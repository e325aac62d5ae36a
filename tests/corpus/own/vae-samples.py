# /// case
# category = "mode"
# kind = "graph-break-sample"
# severity = "warning"
# names = ["z", "posterior"]
# ///
#-
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for x in torch.rand(3, 10, 6):
    mean, log_std = enc(x).chunk(2, -1)
    posterior = Normal(mean, log_std.exp())
    z = posterior.sample()  #- here
#+     z = posterior.rsample()
    loss = nn.functional.mse_loss(dec(z), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(enc.weight.grad)
