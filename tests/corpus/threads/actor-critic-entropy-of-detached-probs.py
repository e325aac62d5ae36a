# /// case
# title = "Entropy bonus of an actor-critic computed from detached probabilities"
# category = "partial-cut"
# kind = "constant-loss-term"
# kinds_also_ok = ["graph-break-detach", "loss-term-without-gradient"]
# severity = "warning"
# names = ["entropy", "probs"]
# symptom = "the entropy term has no grad_fn: its weight changes nothing"
# symptom_check = "entropy.grad_fn is None"
# cause = "probs is detached before the entropy is taken"
# fix = "take the entropy from the tracked distribution"
# evidence = [
#     { url = "https://github.com/huggingface/trl/pull/6625", title = "Fix missing entropy gradient in _ChunkedLogProbFunction backward" },
#     { url = "https://github.com/DLR-RM/stable-baselines3/issues/127", title = "Entropy log-prob estimation" },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(11)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.pi = nn.Linear(32, 3)
        self.v = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.pi(h), self.v(h).squeeze(-1)


agent = ActorCritic()
opt = torch.optim.Adam(agent.parameters(), lr=3e-3)
for update in range(6):
    obs = torch.randn(20, 6)
    logits, values = agent(obs)
    dist = Categorical(logits=logits)
    actions = dist.sample()
    returns = torch.randn(20)
    advantage = returns - values.detach()
    policy_loss = -(dist.log_prob(actions) * advantage).mean()
    probs = logits.softmax(-1).detach()  #- here
#+     probs = logits.softmax(-1)
    entropy = -(probs * probs.clamp_min(1e-8).log()).sum(-1).mean()  #! also
    value_loss = (returns - values).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * entropy  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
