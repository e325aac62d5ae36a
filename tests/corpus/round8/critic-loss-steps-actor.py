# /// case
# title = "After the critic's backward it is the actor's optimizer that steps"
# category = "optimizer"
# kind = "wrong-optimizer-stepped"
# kinds_also_ok = ["optimizer-never-stepped", "optimizer-mixed-up"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["critic_optim", "actor_optim", "update"]
# symptom = "the critic stays as it was initialised"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(agent.critic.parameters(), before))"
# cause = "The critic's gradients are computed and then actor_optim.step() is called where critic_optim.step() belongs."
# fix = "critic_optim.step()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(inputs, outputs, hidden=24):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


class Agent:
    def __init__(self, observation, actions, gamma=0.97):
        self.actor = mlp(observation, actions)
        self.critic = mlp(observation, 1)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=3e-3)
        self.critic_optim = torch.optim.Adam(self.critic.parameters(), lr=1e-2)
        self.gamma = gamma

    def act(self, state):
        return torch.distributions.Categorical(logits=self.actor(state))

    def update(self, state, action, reward, following, done):
        with torch.no_grad():
            goal = reward + self.gamma * (1 - done) * self.critic(following).squeeze(1)
        value = self.critic(state).squeeze(1)
        critic_loss = F.mse_loss(value, goal)
        self.critic_optim.zero_grad()
        critic_loss.backward()  #! also
        self.actor_optim.step()  #- here
#+         self.critic_optim.step()

        advantage = (goal - value).detach()
        policy = self.act(state)
        actor_loss = -(policy.log_prob(action) * advantage).mean() - 0.01 * policy.entropy().mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()
        self.actor_optim.step()
        return actor_loss.item(), critic_loss.item()


torch.manual_seed(4)
agent = Agent(5, 3)
before = [p.detach().clone() for p in agent.critic.parameters()]
state = torch.randn(16, 5)
for iteration in range(12):
    with torch.no_grad():
        action = agent.act(state).sample()
    following = 0.9 * state + 0.1 * F.one_hot(action, 5).float() + 0.05 * torch.randn(16, 5)
    reward = -following.square().sum(1)
    done = (torch.rand(16) < 0.05).float()
    report = agent.update(state, action, reward, following, done)
    state = torch.where(done[:, None].bool(), torch.randn(16, 5), following)
print(report)
