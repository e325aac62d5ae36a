# /// case
# title = "Adam is built anew in each update of the policy, so its moments are lost"
# category = "optimizer"
# kind = "optimizer-rebuilt-each-update"
# kinds_also_ok = ["optimizer-state-lost", "optimizer-created-in-loop", "moments-reset"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "Adam", "update"]
# symptom = "the step count of Adam never passes the epochs of one update: each round begins with empty moments"
# symptom_check = "agent.optimizer.state[agent.policy[0].weight]['step'].item() == agent.epochs"
# cause = "update builds its own optimizer, so momentum, second moments and step count begin at zero in each round."
# fix = "build the optimizer once in __init__"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Bandits:
    """Contextual arms: the best arm is the sign pattern of the context."""

    def __init__(self, size):
        self.size = size

    def contexts(self):
        return torch.randn(self.size, 3)

    def pull(self, context, arm):
        best = (context[:, 0] > 0).long() + 2 * (context[:, 1] > 0).long()
        return (arm == best).float() + 0.1 * torch.randn(self.size)


class Agent(nn.Module):
    def __init__(self, clip=0.2, epochs=3, lr=5e-3, entropy=0.01):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 4))
        self.value = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
        self.clip, self.epochs, self.lr, self.entropy = clip, epochs, lr, entropy  #! here
#+         self.optimizer = torch.optim.Adam(self.parameters(), lr=self.lr)

    def act(self, context):
        with torch.no_grad():
            dist = Categorical(logits=self.policy(context))
            arm = dist.sample()
            return arm, dist.log_prob(arm), self.value(context).squeeze(1)

    def update(self, context, arm, old_log_prob, old_value, reward):
        advantage = reward - old_value
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=self.lr)  #- here
        for _ in range(self.epochs):
            dist = Categorical(logits=self.policy(context))
            ratio = (dist.log_prob(arm) - old_log_prob).exp()
            surrogate = torch.min(ratio * advantage, ratio.clamp(1 - self.clip, 1 + self.clip) * advantage)
            value_loss = (self.value(context).squeeze(1) - reward).square().mean()
            loss = -surrogate.mean() + 0.5 * value_loss - self.entropy * dist.entropy().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  #! also
        return loss.item()


torch.manual_seed(47)
arms, agent = Bandits(128), Agent()
rewards = []
for round_ in range(8):
    context = arms.contexts()
    arm, log_prob, value = agent.act(context)
    reward = arms.pull(context, arm)
    agent.update(context, arm, log_prob, value, reward)  #! also
    rewards.append(reward.mean().item())
print([round(r, 2) for r in rewards])
