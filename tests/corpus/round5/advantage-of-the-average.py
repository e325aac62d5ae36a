# /// case
# title = "One advantage is computed for the whole batch"
# category = "loss"
# kind = "wrong-reduction-dimension"
# severity = "warning"
# names = ["adv_v", "mean"]
# symptom = "all actions of the batch are credited alike"
# symptom_check = "adv_v.numel() == 1"
# cause = "the advantage is averaged before it is multiplied by the log-probabilities"
# fix = "one advantage per sample"
# evidence = [
#     { url = "https://github.com/PacktPublishing/Deep-Reinforcement-Learning-Hands-On/pull/9", title = "Advantage computation fix - Chapter 8 models.py" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(81)
GAMMA, BATCH, ENTROPY_BETA = 0.95, 24, 0.01


class StocksAC(nn.Module):
    """Buys, holds or sells after a look at the last bars."""

    def __init__(self, bars=10, actions=3):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(3, 8, 3), nn.ReLU(), nn.Flatten())
        self.policy, self.value = nn.Linear(8 * (bars - 2), actions), nn.Linear(8 * (bars - 2), 1)

    def forward(self, x):
        h = self.conv(x)
        return self.policy(h), self.value(h).squeeze(-1)


def market(n):
    bars = torch.randn(n, 3, 10)
    return bars, bars[:, 0].mean(1) + 0.1 * torch.randn(n)


net = StocksAC()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-3)
for step_idx in range(20):
    states, move = market(BATCH)
    following, _ = market(BATCH)
    logits_v, value_v = net(states)
    actions_t = torch.distributions.Categorical(logits=logits_v.detach()).sample()
    rewards = (actions_t - 1).float() * move
    with torch.no_grad():
        vals_ref_v = rewards + GAMMA * net(following)[1]
    loss_value_v = F.mse_loss(value_v, vals_ref_v)
    log_prob_v = F.log_softmax(logits_v, dim=1)
    adv_v = (vals_ref_v - value_v.detach()).mean()  #- here
#+     adv_v = vals_ref_v - value_v.detach()
    log_prob_actions_v = adv_v * log_prob_v[range(BATCH), actions_t]  #! also
    loss_policy_v = -log_prob_actions_v.mean()
    prob_v = F.softmax(logits_v, dim=1)
    entropy_loss_v = ENTROPY_BETA * (prob_v * log_prob_v).sum(dim=1).mean()
    loss_v = loss_policy_v + loss_value_v + entropy_loss_v
    optimizer.zero_grad()
    loss_v.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    optimizer.step()
print(loss_v.item())
