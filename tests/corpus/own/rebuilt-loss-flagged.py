# /// case
# category = "leaf"
# kind = "requires-grad-forced-on-loss"
# severity = "warning"
# names = ["total", "losses"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(4, 2)
opt = torch.optim.SGD(policy.parameters(), lr=0.1)


def episode_losses():
    states = torch.randn(6, 4)
    logp = policy(states).log_softmax(-1)
    return [-(row[0]) for row in logp]


for episode in range(3):
    losses = episode_losses()
    total = torch.tensor(losses, requires_grad=True).sum()  #- here
#+     total = torch.stack(losses).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
    print(episode, total.item())
