# /// case
# title = "A buffer of experience keeps the values' graphs"
# category = "retention"
# kind = "stored-tensor-keeps-graph"
# kinds_also_ok = ["accumulated-graph", "memory-growth"]
# severity = "warning"
# names = ["memory", "value"]
# symptom = "200 graphs of forward passes are alive"
# symptom_check = "memory[0].value.grad_fn is not None"
# cause = "the values go into the buffer with their graphs"
# fix = "detach them"
# ///
from collections import deque, namedtuple

import torch
import torch.nn as nn

Transition = namedtuple("Transition", "state action reward value")


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 24), nn.Tanh())
        self.pi, self.v = nn.Linear(24, 2), nn.Linear(24, 1)

    def forward(self, s):
        h = self.body(s)
        return self.pi(h), self.v(h).squeeze(-1)


torch.manual_seed(6)
agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=1e-3)
memory = deque(maxlen=500)
state = torch.zeros(4)
for t in range(200):
    logits, value = agent(state)
    action = torch.distributions.Categorical(logits=logits).sample()
    reward = 1.0 if action.item() == int(state[0] > 0) else 0.0
    memory.append(Transition(state, action, reward, value))  #- here
#+     memory.append(Transition(state, action, reward, value.detach()))
    state = torch.randn(4)
    if len(memory) >= 64 and t % 16 == 0:
        batch = list(memory)[-64:]
        s = torch.stack([b.state for b in batch])
        a = torch.stack([b.action for b in batch])
        ret = torch.tensor([b.reward for b in batch])
        base = torch.stack([b.value for b in batch]).detach()  #! also
        logits, values = agent(s)
        logp = torch.distributions.Categorical(logits=logits).log_prob(a)
        loss = -(logp * (ret - base)).mean() + 0.5 * (values - ret).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item(), len(memory))
