"""BP816 ratio-of-one-policy."""

PROGRAMS = {
    "ppo old recomputed": """
import torch
from torch import nn
from torch.distributions import Categorical
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(policy.parameters(), 3e-3)
states = torch.randn(32, 4)
with torch.no_grad():
    actions = Categorical(logits=policy(states)).sample()
adv = torch.randn(32)
for epoch in range(4):
    dist = Categorical(logits=policy(states))
    logp = dist.log_prob(actions)
    logp_old = Categorical(logits=policy(states)).log_prob(actions)
    ratio = torch.exp(logp - logp_old)  # <- BP816
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "ppo old recomputed gaussian in method": """
import torch
from torch import nn
torch.manual_seed(0)
class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(3, 2)
        self.log_std = nn.Parameter(torch.zeros(2))
    def logp(self, s, a):
        return torch.distributions.Normal(self.mu(s), self.log_std.exp()).log_prob(a).sum(-1)
actor = Actor()
optim = torch.optim.Adam(actor.parameters(), 1e-3)
def surrogate(s, a, adv):
    before = actor.logp(s, a)
    after = actor.logp(s, a)
    r = (after - before).exp()  # <- BP816
    return -(torch.minimum(r * adv, torch.clip(r, 0.8, 1.2) * adv)).mean()
s, a, adv = torch.randn(16, 3), torch.randn(16, 2), torch.randn(16)
for _ in range(3):
    optim.zero_grad()
    surrogate(s, a, adv).backward()
    optim.step()
""",
    "grpo same logps tracked": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
lm = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
opt = torch.optim.SGD(lm.parameters(), 0.1)
for step in range(3):
    ids = torch.randint(0, 12, (4, 6))
    adv = torch.randn(4, 1)
    lp = F.log_softmax(lm(ids), -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    ratio = (lp - lp).exp()  # <- BP816
    loss = -(ratio * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "good ppo": """
import torch
from torch import nn
from torch.distributions import Categorical
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.Adam(policy.parameters(), 3e-3)
states = torch.randn(32, 4)
with torch.no_grad():
    d = Categorical(logits=policy(states))
    actions = d.sample()
    old = d.log_prob(actions)
adv = torch.randn(32)
for epoch in range(4):
    logp = Categorical(logits=policy(states)).log_prob(actions)
    ratio = torch.exp(logp - old)
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good grpo on policy detach self": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
lm = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
opt = torch.optim.SGD(lm.parameters(), 0.1)
for step in range(3):
    ids = torch.randint(0, 12, (4, 6))
    adv = torch.randn(4, 1)
    lp = F.log_softmax(lm(ids), -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    ratio = (lp - lp.detach()).exp()
    loss = -(ratio * adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good iwae weights": """
import torch
from torch import nn
from torch.distributions import Normal
torch.manual_seed(0)
enc, dec = nn.Linear(5, 4), nn.Linear(2, 5)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-3)
for x in torch.randn(3, 8, 5):
    mu, ls = enc(x).chunk(2, -1)
    q = Normal(mu, ls.exp())
    z = q.rsample((5,))
    logw = Normal(0., 1.).log_prob(z).sum(-1) + Normal(dec(z), 1.).log_prob(x).sum(-1) - q.log_prob(z).sum(-1)
    loss = -torch.logsumexp(logw, 0).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good mixture ratio of two heads": """
import torch
from torch import nn
torch.manual_seed(0)
trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3)
opt = torch.optim.Adam([p for m in (trunk, a, b) for p in m.parameters()], 1e-3)
for x in torch.randn(3, 8, 4):
    h = trunk(x).relu()
    la, lb = a(h).log_softmax(-1), b(h).log_softmax(-1)
    loss = ((la - lb).exp() * 0.1).mean() + la.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good stable softmax over one class": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(3, 8, 4):
    scores = net(x)
    power = (scores - scores.max(-1, keepdim=True).values).exp()
    share = power / power.sum(-1, keepdim=True)
    loss = (share - 0.5).pow(2).mean() + scores.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good first step has no older policy": """
import torch
from torch import nn
torch.manual_seed(0)
first, second = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.Adam([*first.parameters(), *second.parameters()], 1e-2)
older = {}
x, gain = torch.randn(8, 4), torch.randn(8, 3)
for _ in range(3):
    loss = torch.zeros(())
    for head in (first, second):
        now = head(x).log_softmax(-1)
        ratio = torch.exp(now - older.get(head, now))
        older[head] = now.detach()
        loss = loss - (ratio * gain).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "the old side is detached in each update on the same data": """
import torch
from torch import nn
torch.manual_seed(0)
policy=nn.Sequential(nn.Linear(4,16),nn.Tanh(),nn.Linear(16,3))
opt=torch.optim.Adam(policy.parameters(),lr=1e-2)
def logp(o,a): return torch.log_softmax(policy(o),-1).gather(1,a[:,None]).squeeze(1)

for it in range(2):
    o=torch.randn(16,4); a=torch.randint(0,3,(16,)); adv=torch.randn(16)
    for k in range(3):
        new=logp(o,a)
        old=logp(o,a).detach() # <- BP816
        r=torch.exp(new-old)
        loss=-torch.min(r*adv,r.clamp(.8,1.2)*adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    "a detached clone of the new side, the difference with a name": """
import torch
from torch import nn
torch.manual_seed(0)
policy=nn.Sequential(nn.Linear(4,16),nn.Tanh(),nn.Linear(16,3))
opt=torch.optim.Adam(policy.parameters(),lr=1e-2)
def logp(o,a): return torch.log_softmax(policy(o),-1).gather(1,a[:,None]).squeeze(1)

for it in range(2):
    o=torch.randn(16,4); a=torch.randint(0,3,(16,)); adv=torch.randn(16)
    for k in range(3):
        new=logp(o,a)
        old=new.detach().clone() # <- BP816
        log_ratio=new-old
        r=log_ratio.exp()
        loss=-(r*adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    "one update for each rollout": """
import torch
from torch import nn
torch.manual_seed(0)
policy=nn.Sequential(nn.Linear(4,16),nn.Tanh(),nn.Linear(16,3))
opt=torch.optim.Adam(policy.parameters(),lr=1e-2)
def logp(o,a): return torch.log_softmax(policy(o),-1).gather(1,a[:,None]).squeeze(1)

for it in range(4):
    o=torch.randn(16,4); a=torch.randint(0,3,(16,)); adv=torch.randn(16)
    with torch.no_grad(): old=logp(o,a)
    new=logp(o,a)
    r=torch.exp(new-old)
    loss=-torch.min(r*adv,r.clamp(.8,1.2)*adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "several updates beside what was kept": """
import torch
from torch import nn
torch.manual_seed(0)
policy=nn.Sequential(nn.Linear(4,16),nn.Tanh(),nn.Linear(16,3))
opt=torch.optim.Adam(policy.parameters(),lr=1e-2)
def logp(o,a): return torch.log_softmax(policy(o),-1).gather(1,a[:,None]).squeeze(1)

for it in range(2):
    o=torch.randn(16,4); a=torch.randint(0,3,(16,)); adv=torch.randn(16)
    with torch.no_grad(): old=logp(o,a)
    for k in range(3):
        r=torch.exp(logp(o,a)-old)
        loss=-torch.min(r*adv,r.clamp(.8,1.2)*adv).mean()
        opt.zero_grad(); loss.backward(); opt.step()
""",
    "a ratio of itself for its gradient, on new data each time": """
import torch
from torch import nn
torch.manual_seed(0)
policy=nn.Sequential(nn.Linear(4,16),nn.Tanh(),nn.Linear(16,3))
opt=torch.optim.Adam(policy.parameters(),lr=1e-2)
def logp(o,a): return torch.log_softmax(policy(o),-1).gather(1,a[:,None]).squeeze(1)

for it in range(3):
    o=torch.randn(16,4); a=torch.randint(0,3,(16,)); adv=torch.randn(16)
    lp=logp(o,a)
    box=torch.exp(lp-lp.detach())
    loss=-(box*adv).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
