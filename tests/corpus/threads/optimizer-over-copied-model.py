# /// case
# title = "The agent deep-copies the network it is given, the optimizer keeps the original"
# category = "optimizer-time"
# kind = "parameters-not-in-optimizer"
# kinds_also_ok = ["optimizer-holds-other-model", "step-without-gradient"]
# severity = "warning"
# names = ["policy", "optimizer"]
# symptom = "the agent's network never changes"
# symptom_check = "torch.equal(agent.policy[0].weight, first)"
# cause = "the optimizer was made over the network outside"
# fix = "make it over the agent's own network"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/14467", title = 'Optimizer warning when parameters "change"' },
# ]
# ///
import copy

import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self, network, lr=1e-2):
        self.policy = copy.deepcopy(network)
        self.old = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr)  #- here
#+         self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def learn(self, obs, actions, advantages):
        with torch.no_grad():
            old = Categorical(logits=self.old(obs)).log_prob(actions)
        for _ in range(3):
            ratio = (Categorical(logits=self.policy(obs)).log_prob(actions) - old).exp()
            loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  #! also
        self.old.load_state_dict(self.policy.state_dict())


torch.manual_seed(0)
agent = Agent(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2)))
first = agent.policy[0].weight.detach().clone()
for _ in range(3):
    agent.learn(torch.randn(32, 4), torch.randint(0, 2, (32,)), torch.randn(32))
