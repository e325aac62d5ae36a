# /// case
# title = "Difference of return and value is not a constant in the actor's loss"
# category = "loss"
# kind = "tracked-advantage"
# kinds_also_ok = ["missing-detach"]
# severity = "warning"
# names = ["diff", "value", "actor_losses"]
# symptom = "the value head is pushed by the policy's loss"
# symptom_check = "leaked is not None"
# cause = "value carries its graph into the advantage"
# fix = "detach it there"
# evidence = [
#     { url = "https://github.com/keras-team/keras-io/issues/194", title = "Possible issue of gradients calculation in actor_critic_cartpole example" },
#     { url = "https://github.com/nikhilbarhate99/PPO-PyTorch/issues/29", title = "Question regarding state_values.detach()" },
# ]
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical

gamma, max_steps = 0.99, 12


class Policy(nn.Module):
    def __init__(self, num_inputs=4, num_actions=2, num_hidden=32):
        super().__init__()
        self.common = nn.Sequential(nn.Linear(num_inputs, num_hidden), nn.ReLU())
        self.action, self.critic = nn.Linear(num_hidden, num_actions), nn.Linear(num_hidden, 1)

    def forward(self, state):
        h = self.common(state)
        return Categorical(logits=self.action(h)), self.critic(h)


class PoleToy:
    """A point that has to be kept near the origin."""

    def reset(self):
        self.state, self.t = torch.randn(4) * 0.1, 0
        return self.state

    def step(self, action):
        self.t += 1
        self.state = self.state + 0.1 * torch.randn(4) + (0.05 if action else -0.05)
        return self.state, float(self.state.norm() < 1), self.t >= max_steps


torch.manual_seed(73)
env, model = PoleToy(), Policy()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for episode in range(5):
    state, done = env.reset(), False
    log_probs, values, rewards = [], [], []
    while not done:
        dist, value = model(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value.squeeze())
        state, reward, done = env.step(action.item())
        rewards.append(reward)

    returns, total = [], 0.0
    for r in reversed(rewards):
        total = r + gamma * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)

    actor_losses, critic_losses = [], []
    for log_prob, value, ret in zip(log_probs, values, returns):
        diff = ret - value  #- here
#+         diff = ret - value.detach()
        actor_losses.append(-log_prob * diff)  #! here
        critic_losses.append(nn.functional.huber_loss(value, ret))
    actor_loss, critic_loss = sum(actor_losses), sum(critic_losses)
    leaked = torch.autograd.grad(actor_loss, model.critic.bias, retain_graph=True, allow_unused=True)[0]
    optimizer.zero_grad()
    (actor_loss + critic_loss).backward()  #! also
    optimizer.step()
print(actor_loss.item(), critic_loss.item())
