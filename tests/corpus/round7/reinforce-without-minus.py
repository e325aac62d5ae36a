# /// case
# title = "The policy loss is the reward-weighted log-probability without a minus"
# category = "loss"
# kind = "wrong-loss-sign"
# kinds_also_ok = ["objective-sign", "gradient-ascent-missing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["policy_loss", "log_prob"]
# symptom = "the policy avoids the arm that pays"
# symptom_check = "torch.softmax(policy.logits, 0)[3].item() < 0.25"
# cause = "the optimizer minimizes what is to be maximized"
# fix = "minus"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Bandit:
    def __init__(self, means, noise=0.1):
        self.means, self.noise = torch.tensor(means), noise

    def pull(self, arms):
        return self.means[arms] + self.noise * torch.randn(len(arms))


class SoftmaxPolicy(nn.Module):
    def __init__(self, arms):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(arms))

    def forward(self):
        return Categorical(logits=self.logits)


class Reinforce:
    def __init__(self, policy, lr, entropy_weight=0.01, decay=0.8):
        self.policy, self.entropy_weight, self.decay = policy, entropy_weight, decay
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
        self.baseline = 0.0

    def learn(self, bandit, pulls=32):
        pi = self.policy()
        arms = pi.sample((pulls,))
        reward = bandit.pull(arms)
        advantage = reward - self.baseline
        self.baseline = self.decay * self.baseline + (1 - self.decay) * reward.mean().item()
        policy_loss = (pi.log_prob(arms) * advantage).mean()  #- here
#+         policy_loss = -(pi.log_prob(arms) * advantage).mean()
        loss = policy_loss - self.entropy_weight * pi.entropy()
        self.optimizer.zero_grad()
        loss.backward()  #! also
        self.optimizer.step()
        return reward.mean().item()


torch.manual_seed(75)
bandit, policy = Bandit([0.1, 0.4, 0.2, 1.0]), SoftmaxPolicy(4)
agent = Reinforce(policy, lr=0.1)
for episode in range(30):
    earned = agent.learn(bandit)
    if episode % 10 == 9:
        print(episode, earned, policy().probs.tolist())
