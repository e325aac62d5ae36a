# /// case
# title = "The terminal mask is added where it should be multiplied"
# category = "loss"
# kind = "terminal-mask"
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "expected_state_action_values"]
# symptom = "the target bootstraps beyond the end of an episode"
# symptom_check = "not torch.allclose(target_at_end, reward_at_end)"
# cause = "gamma * mask + value"
# fix = "gamma * mask * value"
# evidence = [
#     { url = "https://github.com/ikostrikov/pytorch-ddpg-naf/issues/16", title = "Typo in the Implementation" },
#     { url = "https://github.com/ghliu/pytorch-ddpg/issues/6", title = "error in compute target q values" },
# ]
# ///
import copy

import torch
import torch.nn as nn

torch.manual_seed(65)


class Policy(nn.Module):
    """Normalised advantage function: Q = V - 0.5 (u - mu)' P (u - mu)"""

    def __init__(self, hidden, n_in, n_u):
        super().__init__()
        self.n_u = n_u
        self.body = nn.Sequential(nn.Linear(n_in, hidden), nn.Tanh())
        self.V, self.mu, self.L = nn.Linear(hidden, 1), nn.Linear(hidden, n_u), nn.Linear(hidden, n_u * n_u)

    def forward(self, x, u=None):
        h = self.body(x)
        V, mu = self.V(h), torch.tanh(self.mu(h))
        if u is None:
            return mu, V
        L = self.L(h).view(-1, self.n_u, self.n_u)
        L = L.tril(-1) + torch.diag_embed(torch.diagonal(L, dim1=1, dim2=2).exp())
        d = (u - mu)[:, :, None]
        A = -0.5 * (d.transpose(1, 2) @ (L @ L.transpose(1, 2)) @ d)[:, :, 0]
        return V + A


class NAF:
    def __init__(self, gamma=0.9, tau=0.05):
        self.model = Policy(32, 4, 2)
        self.target_model = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.gamma, self.tau = gamma, tau

    def targets(self, reward, mask, next_state):
        with torch.no_grad():
            next_values = self.target_model(next_state)[1]
        return reward + (self.gamma * mask + next_values)  #- here
#+         return reward + (self.gamma * mask * next_values)

    def update_parameters(self, state, action, mask, next_state, reward):
        expected_state_action_values = self.targets(reward, mask, next_state)
        loss = nn.functional.mse_loss(self.model(state, action), expected_state_action_values)  #! also
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1)
        self.optimizer.step()
        with torch.no_grad():
            for t, s in zip(self.target_model.parameters(), self.model.parameters()):
                t.mul_(1 - self.tau).add_(self.tau * s)
        return loss.item()


agent = NAF()
for it in range(20):
    s, a = torch.randn(32, 4), torch.rand(32, 2) * 2 - 1
    mask = (torch.rand(32, 1) > 0.2).float()
    loss = agent.update_parameters(s, a, mask, s + 0.1 * torch.randn(32, 4), -(a - s[:, :2]).square().sum(1, keepdim=True))
reward_at_end = torch.tensor([[1.5], [-0.5]])
target_at_end = agent.targets(reward_at_end, torch.zeros(2, 1), torch.randn(2, 4))
print(loss, target_at_end.flatten())
