# /// case
# title = "The target is copied under a condition that never holds"
# category = "identity"
# kind = "target-never-updated"
# kinds_also_ok = ["dead-condition"]
# severity = "warning"
# names = ["counter", "update_target"]
# symptom = "the target stays as it was initialised"
# symptom_check = "player.syncs == 0"
# cause = "the counter of the memory stops at its size, which is below the interval"
# fix = "count learning steps"
# evidence = [
#     { url = "https://github.com/shakedzy/tic_tac_toe/issues/1", title = "Network never copied" },
# ]
# ///
import random

import torch
import torch.nn as nn


class ReplayMemory:
    def __init__(self, size):
        self.memory, self.size, self.counter = [], size, 0

    def append(self, element):
        self.memory.append(element)
        self.memory = self.memory[-self.size:]
        self.counter = len(self.memory)

    def sample(self, n):
        return random.sample(self.memory, n)


class QPlayer:
    def __init__(self, batch_size=10, q_update=50):
        make = lambda: nn.Sequential(nn.Linear(9, 36), nn.Tanh(), nn.Linear(36, 9))
        self.q_network, self.q_target = make(), make().requires_grad_(False)
        self.q_target.load_state_dict(self.q_network.state_dict())
        self.memory, self.batch_size, self.q_update = ReplayMemory(40), batch_size, q_update
        self.optimizer = torch.optim.Adam(self.q_network.parameters(), lr=1e-3)
        self.learn_counter, self.syncs = 0, 0

    def update_target(self):
        self.q_target.load_state_dict(self.q_network.state_dict())
        self.syncs += 1

    def learn(self):
        if len(self.memory.memory) < self.batch_size:
            return
        self.learn_counter += 1
        s, a, r, s2, ended = zip(*self.memory.sample(self.batch_size))
        q = self.q_network(torch.stack(s)).gather(1, torch.tensor(a)[:, None]).squeeze(1)
        with torch.no_grad():
            bootstrap = self.q_target(torch.stack(s2)).amax(1) * (1 - torch.tensor(ended))
        loss = (q - torch.tensor(r) - 0.9 * bootstrap).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.memory.counter % self.q_update == 0:  #- here
#+         if self.learn_counter % self.q_update == 0:
            self.update_target()  #! also


random.seed(4)
torch.manual_seed(4)
player = QPlayer()
for game in range(25):
    board = torch.zeros(9)
    for move in range(4):
        free = (board == 0).nonzero().flatten().tolist()
        a = random.choice(free)
        board2 = board.clone()
        board2[a] = 1.0
        player.memory.append((board, a, float(move == 3 and a == 4), board2, float(move == 3)))
        board = board2.clone()
        board[random.choice([f for f in free if f != a])] = -1.0
        player.learn()
print(player.syncs)
