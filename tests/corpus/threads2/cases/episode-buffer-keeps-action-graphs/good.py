from collections import deque

import torch
import torch.nn as nn


class Agent(nn.Module):
    def __init__(self, obs=5, hidden=16, acts=3):
        super().__init__()
        self.fc = nn.Linear(obs, hidden)
        self.rnn = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, acts)

    def forward(self, obs, h):
        h = self.rnn(torch.relu(self.fc(obs)), h)
        return self.out(h), h


class EpisodeRunner:
    def __init__(self, agent, limit=6):
        self.agent, self.limit = agent, limit

    def run(self):
        episode, h = [], torch.zeros(2, 16)
        for t in range(self.limit):
            obs = torch.randn(2, 5)
            q, h = self.agent(obs, h)
            actions = torch.softmax(q, -1)
            reward = torch.rand(2)
            episode.append({"obs": obs, "actions": actions.detach(), "hidden": h.detach(), "reward": reward})
        return episode


class ReplayBuffer:
    def __init__(self, size):
        self.episodes = deque(maxlen=size)

    def insert_episode_batch(self, episode):
        self.episodes.append(episode)

    def sample(self):
        return self.episodes[torch.randint(len(self.episodes), (1,)).item()]


def learn(agent, optimiser, episode):
    h = torch.zeros(2, 16)
    loss = 0.0
    for step in episode:
        q, h = agent(step["obs"], h)
        chosen = step["actions"].argmax(-1, keepdim=True)
        loss = loss + (q.gather(1, chosen).squeeze(1) - step["reward"]).pow(2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


torch.manual_seed(1)
agent = Agent()
optimiser = torch.optim.RMSprop(agent.parameters(), lr=5e-4)
runner, buffer = EpisodeRunner(agent), ReplayBuffer(50)
for episode_num in range(8):
    buffer.insert_episode_batch(runner.run())
    learn(agent, optimiser, buffer.sample())
held = [s["actions"].grad_fn is not None for e in buffer.episodes for s in e]
print(len(held))
