# /// case
# title = "The rollout buffer stores value estimates with their graphs"
# category = "retention"
# kind = "stored-tensor-keeps-graph"
# kinds_also_ok = ["graph-kept-alive", "advantage-not-detached", "missing-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["buffer", "value", "values"]
# symptom = "the buffer keeps the graph of every critic call and the advantage pulls on the critic"
# symptom_check = "buffer[0].value.grad_fn is not None"
# cause = "the value is stored as it comes from the critic"
# fix = "run the critic of the rollout under no_grad"
# ///
from collections import namedtuple

import torch
import torch.nn as nn
from torch.distributions import Categorical

Transition = namedtuple("Transition", "state action reward value")


class ActorCritic(nn.Module):
    def __init__(self, n_state=4, n_action=3):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(n_state, 16), nn.Tanh(), nn.Linear(16, n_action))
        self.critic = nn.Sequential(nn.Linear(n_state, 16), nn.Tanh(), nn.Linear(16, 1))


def rollout(agent, n):
    buffer, state = [], torch.randn(4)
    for _ in range(n):
        with torch.no_grad():
            action = Categorical(logits=agent.actor(state)).sample()
        value = agent.critic(state).squeeze()  #- here
#+             value = agent.critic(state).squeeze()
        reward = float(action == state[:3].argmax())
        buffer.append(Transition(state, action, reward, value))  #! also
        state = 0.8 * state + 0.3 * torch.randn(4)
    return buffer


def update(agent, optimizer, buffer, gamma=0.9):
    returns, running = [], 0.0
    for item in reversed(buffer):
        running = item.reward + gamma * running
        returns.insert(0, running)
    returns = torch.tensor(returns)
    advantage = returns - torch.stack([t.value for t in buffer])  #! also
    states = torch.stack([t.state for t in buffer])
    policy = Categorical(logits=agent.actor(states))
    chosen = policy.log_prob(torch.stack([t.action for t in buffer]))
    loss = -(chosen * advantage).mean() + 0.5 * (agent.critic(states).squeeze(1) - returns).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(23)
agent = ActorCritic()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
for iteration in range(6):
    buffer = rollout(agent, 20)
    print(iteration, update(agent, optimizer, buffer))
