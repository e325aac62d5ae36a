# /// case
# title = "After the copy the name of the target is bound to the moving network"
# category = "identity"
# kind = "target-network-alias"
# severity = "warning"
# names = ["target_nn", "moving_nn"]
# symptom = "from the first update on the target moves with each step"
# symptom_check = "control.target_nn is control.moving_nn"
# cause = "one network under two names"
# fix = "the copy alone"
# evidence = [
#     { url = "https://github.com/andri27-ts/Reinforcement-Learning/issues/14", title = "Updating target network - Potential Bug" },
# ]
# ///
import random
from collections import deque

import torch
from torch import nn


class CentralControl:
    def __init__(self, obs, acts, gamma=0.9, lr=1e-3, n_iter_update=4):
        self.moving_nn = self.build(obs, acts)
        self.target_nn = self.build(obs, acts)
        self.target_nn.load_state_dict(self.moving_nn.state_dict())
        self.optimizer = torch.optim.Adam(self.moving_nn.parameters(), lr=lr)
        self.gamma, self.n_iter_update, self.iter_update = gamma, n_iter_update, 0

    @staticmethod
    def build(obs, acts):
        return nn.Sequential(nn.Linear(obs, 24), nn.ReLU(), nn.Linear(24, acts))

    def optimize(self, mini_batch):
        loss = self._loss(mini_batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update_target()
        return loss.item()

    def update_target(self):
        self.iter_update += 1
        if self.iter_update % self.n_iter_update == 0:
            self.target_nn.load_state_dict(self.moving_nn.state_dict())
            self.target_nn = self.moving_nn  #- here

    def _loss(self, batch):
        states, actions, rewards, nxt, dones = map(torch.stack, zip(*batch))
        q = self.moving_nn(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            target = rewards + self.gamma * (1 - dones) * self.target_nn(nxt).amax(1)  #! also
        return nn.functional.mse_loss(q, target)


random.seed(0)
torch.manual_seed(61)
control = CentralControl(4, 2)
replay = deque(maxlen=200)
for frame in range(40):
    s = torch.randn(4)
    replay.append((s, torch.randint(0, 2, ()), torch.randn(()), s + 0.1 * torch.randn(4), torch.tensor(float(frame % 10 == 9))))
    if frame >= 28:
        control.optimize(random.sample(replay, 16))
print(control.iter_update)
