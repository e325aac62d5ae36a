import copy

import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self, network, lr=1e-2):
        self.policy = copy.deepcopy(network)
        self.old = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr)

    def learn(self, obs, actions, advantages):
        with torch.no_grad():
            old = Categorical(logits=self.old(obs)).log_prob(actions)
        for _ in range(3):
            ratio = (Categorical(logits=self.policy(obs)).log_prob(actions) - old).exp()
            loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.old.load_state_dict(self.policy.state_dict())


torch.manual_seed(0)
agent = Agent(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)))
first = agent.policy[0].weight.detach().clone()
for _ in range(3):
    agent.learn(torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32))
