# /// case
# title = "Episode buffer stores actions and hidden states with their graphs"
# category = "retention"
# kind = "graph-retained-in-container"
# kinds_also_ok = ["graph-retained-list"]
# severity = "warning"
# names = ["buffer", "actions", "hidden", "insert"]
# symptom = "memory grows with each episode: every stored action holds the graph of its rollout"
# symptom_check = "all(held)"
# cause = "tensors are stored without detach()"
# fix = "store detached tensors, or run the rollout under no_grad"
# evidence = [
#     { url = "https://github.com/oxwhirl/pymarl/pull/73", title = "Fix memory leak" },
#     { url = "https://github.com/Metta-AI/metta/pull/1139", title = "Detaching the LSTM state before storing experience" },
# ]
# ///
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
            episode.append({"obs": obs, "actions": actions, "hidden": h, "reward": reward})  #- here
#+             episode.append({"obs": obs, "actions": actions.detach(), "hidden": h.detach(), "reward": reward})
        return episode


class ReplayBuffer:
    def __init__(self, size):
        self.episodes = deque(maxlen=size)

    def insert_episode_batch(self, episode):
        self.episodes.append(episode)  #! also

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
