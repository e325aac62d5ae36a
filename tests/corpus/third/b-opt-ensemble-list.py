# /// case
# title = "Ensemble members in a plain list are not registered"
# category = "optimizer-wiring"
# kind = "unregistered-parameters"
# severity = "warning"
# severity_by_writer = "error"
# names = ["members"]
# difficulty = "medium"
# symptom = "Loss goes down a little (encoder and log_var learn), the five members never change."
# symptom_check = "not any(p is dynamics.members[0][0].weight for g in optimizer.param_groups for p in g['params'])"
# cause = "self.members is a Python list, so nn.Module does not register the MLPs; dynamics.parameters() omits them and Adam never sees them."
# fix = "Use nn.ModuleList."
# evidence = [{ url = "https://github.com/ikostrikov/pytorch-meta-optimizer/issues/11" }]
# ///
"""Model-based RL: probabilistic ensemble that predicts the next state."""
import torch
from torch import nn

STATE, ACTION, LATENT = 6, 2, 24


def mlp(sizes):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class DynamicsEnsemble(nn.Module):
    def __init__(self, n_members=5):
        super().__init__()
        self.encoder = nn.Linear(STATE + ACTION, LATENT)
        self.members = [mlp([LATENT, 32, STATE]) for _ in range(n_members)]  #- here
#+         self.members = nn.ModuleList(mlp([LATENT, 32, STATE]) for _ in range(n_members))
        self.log_var = nn.Parameter(torch.zeros(STATE))

    def forward(self, state, action):
        h = torch.tanh(self.encoder(torch.cat([state, action], dim=-1)))
        means = torch.stack([state + m(h) for m in self.members])  #! also
        return means, self.log_var

    def nll(self, state, action, target):
        means, log_var = self(state, action)
        err = (means - target).pow(2) * torch.exp(-log_var)
        return 0.5 * (err + log_var).mean()


class ReplayBuffer:
    def __init__(self):
        self.rows = []

    def add(self, *row):
        self.rows.append(row)

    def sample(self, n):
        pick = torch.randint(0, len(self.rows), (n,)).tolist()
        return [torch.stack(col) for col in zip(*(self.rows[i] for i in pick))]


def environment_step(s, a):
    drift = 0.9 * s.roll(1) + 0.3 * torch.cat([a, a, a])
    return torch.tanh(drift)


torch.manual_seed(3)
buffer = ReplayBuffer()
state = torch.zeros(STATE)
for _ in range(300):
    action = torch.rand(ACTION) * 2 - 1
    nxt = environment_step(state, action)
    buffer.add(state, action, nxt)
    state = nxt

dynamics = DynamicsEnsemble()
optimizer = torch.optim.Adam(dynamics.parameters(), lr=3e-3)  #! here
history = []
for update in range(40):
    s, a, s2 = buffer.sample(64)
    loss = dynamics.nll(s, a, s2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  #! also
    history.append(loss.item())
print(history[0], history[-1])
