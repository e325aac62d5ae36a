# /// case
# title = "Q values of shape (N, 1) minus targets of shape (N,) make an N by N error"
# category = "loss"
# kind = "td-error-broadcast"
# kinds_also_ok = ["shape-mismatch-broadcast", "missing-squeeze", "silent-broadcasting"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["q", "goal", "td_error", "gather"]
# symptom = "each Q value is drawn to the mean of all targets of the batch"
# symptom_check = "tuple(td_error(net, target, replay.sample(7)).shape) == (7, 7)"
# cause = "gather keeps the dimension of the actions; (N, 1) and (N,) broadcast to (N, N) without a warning."
# fix = "squeeze the gathered values"
# ///
import collections
import random

import torch
import torch.nn as nn

Transition = collections.namedtuple("Transition", "state action reward following done")


class Replay:
    def __init__(self, size):
        self.items = collections.deque(maxlen=size)

    def add(self, *values):
        self.items.append(Transition(*values))

    def sample(self, count):
        batch = Transition(*zip(*random.sample(self.items, count)))
        return Transition(torch.stack(batch.state), torch.tensor(batch.action), torch.tensor(batch.reward),
                          torch.stack(batch.following), torch.tensor(batch.done, dtype=torch.float))


class Cliff:
    def reset(self):
        self.x = 0
        return self.view()

    def view(self):
        return torch.eye(6)[self.x]

    def step(self, action):
        self.x = max(0, min(5, self.x + (1 if action else -1)))
        return self.view(), (1.0 if self.x == 5 else -0.05), self.x == 5


def td_error(net, target, batch, gamma=0.9):
    q = net(batch.state).gather(1, batch.action.unsqueeze(1))  #- here
#+     q = net(batch.state).gather(1, batch.action.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        goal = batch.reward + gamma * (1 - batch.done) * target(batch.following).max(dim=1).values  #! here
    return q - goal  #! here


random.seed(59)
torch.manual_seed(59)
env, replay = Cliff(), Replay(300)
net, target = nn.Linear(6, 2), nn.Linear(6, 2)
target.load_state_dict(net.state_dict())
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-2)
state, updates = env.reset(), 0
for step in range(1, 121):
    action = random.randrange(2) if random.random() < 0.5 else int(net(state).argmax())
    following, reward, done = env.step(action)
    replay.add(state, action, reward, following, done)
    state = env.reset() if done else following
    if step >= 40 and step % 4 == 0:
        loss = td_error(net, target, replay.sample(32)).square().mean()  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updates += 1
    if step % 40 == 0:
        target.load_state_dict(net.state_dict())
print(updates, loss.item(), net.weight.data.argmax(0).tolist())
