# /// case
# title = "The advantage's mean is over batch and actions"
# category = "loss"
# kind = "wrong-reduction-dimension"
# kinds_also_ok = ["batch-mixing"]
# severity = "warning"
# names = ["advantage", "mean"]
# symptom = "values of a state depend on the other states of the batch"
# symptom_check = "not torch.allclose(together[0], alone, atol=1e-5)"
# cause = "mean() without a dimension"
# fix = "mean(dim=1, keepdim=True)"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/issues/140", title = "DuelingDQN.ipynb中可能存在的两个BUG~" },
# ]
# ///
import copy

import torch
import torch.nn as nn


class DuelingNet(nn.Module):
    def __init__(self, n_states, n_actions, hidden_dim=48):
        super().__init__()
        self.hidden_layer = nn.Sequential(nn.Linear(n_states, hidden_dim), nn.ReLU())
        self.advantage_layer = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, n_actions))
        self.value_layer = nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 1))

    def forward(self, state):
        x = self.hidden_layer(state)
        advantage = self.advantage_layer(x)
        value = self.value_layer(x)
        return value + advantage - advantage.mean()  #- here
#+         return value + advantage - advantage.mean(dim=1, keepdim=True)


torch.manual_seed(62)
gamma = 0.9
policy_net = DuelingNet(6, 3)
target_net = copy.deepcopy(policy_net).requires_grad_(False)
optimizer = torch.optim.Adam(policy_net.parameters(), lr=2e-3)
memory = dict(s=torch.randn(300, 6), a=torch.randint(0, 3, (300, 1)), s2=torch.randn(300, 6), d=(torch.rand(300, 1) < 0.1).float())
memory["r"] = memory["s"].gather(1, memory["a"])
for step in range(30):
    idx = torch.randint(0, 300, (32,))
    s, a, r, s2, d = (memory[k][idx] for k in ("s", "a", "r", "s2", "d"))
    q = policy_net(s).gather(1, a)
    with torch.no_grad():
        best = policy_net(s2).argmax(1, keepdim=True)
        expected = r + gamma * (1 - d) * target_net(s2).gather(1, best)
    loss = nn.functional.smooth_l1_loss(q, expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 9:
        target_net.load_state_dict(policy_net.state_dict())
with torch.no_grad():
    together, alone = policy_net(memory["s"][:8]), policy_net(memory["s"][:1])[0]
print(loss.item(), (together[0] - alone).abs().max().item())
