# /// case
# title = "The entropy bonus has the wrong sign"
# category = "loss"
# kind = "wrong-sign"
# severity = "warning"
# names = ["entropy", "total_loss"]
# symptom = "the policy is driven to determinism"
# symptom_check = "entropy_slope < 0"
# cause = "entropy is added to a loss that is minimised"
# fix = "subtract it"
# evidence = [
#     { url = "https://github.com/google-deepmind/open_spiel/issues/962", title = "A question of BatchA2CLoss" },
# ]
# ///
import torch
import torch.nn as nn


class BatchA2CLoss:
    def __init__(self, entropy_cost=0.05):
        self._entropy_cost = entropy_cost

    def loss(self, policy_logits, baseline, actions, returns):
        log_pi = policy_logits.log_softmax(-1)
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        advantages = (returns - baseline).detach()
        policy_loss = -(advantages * log_pi.gather(1, actions[:, None]).squeeze(1)).mean()
        total_loss = policy_loss
        if self._entropy_cost:
            total_loss = total_loss + self._entropy_cost * entropy.mean()  #- here
#+             total_loss = total_loss - self._entropy_cost * entropy.mean()
        return total_loss


class PolicyGradientAgent:
    def __init__(self, info_size=11, n_actions=3):
        self.torso = nn.Sequential(nn.Linear(info_size, 32), nn.ReLU())
        self.policy_head, self.baseline_head = nn.Linear(32, n_actions), nn.Linear(32, 1)
        self.params = [*self.torso.parameters(), *self.policy_head.parameters(), *self.baseline_head.parameters()]
        self.optimizer = torch.optim.SGD(self.params, lr=0.05)
        self.criterion = BatchA2CLoss()

    def step(self, info_state, play):
        h = self.torso(info_state)
        logits, baseline = self.policy_head(h), self.baseline_head(h).squeeze(1)
        actions = torch.distributions.Categorical(logits=logits.detach()).sample()
        returns = play(info_state, actions)
        loss = self.criterion.loss(logits, baseline, actions, returns) + (returns - baseline).square().mean()  #! also
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(87)
agent = PolicyGradientAgent()
# rock, paper, scissors against a noisy opponent
for episode in range(15):
    loss = agent.step(torch.randn(32, 11), lambda s, a: ((a - s[:, :3].argmax(1)) % 3 == 1).float() - ((a - s[:, :3].argmax(1)) % 3 == 2).float())
flat, peaked = torch.zeros(1, 3), torch.tensor([[4.0, 0.0, 0.0]])
of = lambda logits: agent.criterion.loss(logits, torch.zeros(1), torch.tensor([0]), torch.zeros(1)).item()
entropy_slope = of(peaked) - of(flat)
print(loss, entropy_slope)
