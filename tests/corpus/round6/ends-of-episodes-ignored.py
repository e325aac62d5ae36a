# /// case
# title = "The target of a last transition looks beyond the end"
# category = "loss"
# kind = "terminal-not-masked"
# kinds_also_ok = ["wrong-target", "missing-mask"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["done", "td_target"]
# symptom = "values grow without bound"
# symptom_check = "not torch.allclose(goal[b.done], b.reward[b.done])"
# cause = "done is not used: the value after the end is added"
# fix = "multiply by 1 - done"
# evidence = [
#     { url = "https://github.com/navneet-nmk/pytorch-rl/issues/2", title = "'Done' not used in calculating Q-value targets" },
#     { url = "https://github.com/seungeunrho/minimalRL/issues/32", title = "Missing done mask?" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Batch:
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    next_obs: torch.Tensor
    done: torch.Tensor


def corridor(n, length=6):
    pos = torch.randint(0, length, (n,))
    move = torch.randint(0, 2, (n,))
    nxt = (pos + 2 * move - 1).clamp(0, length - 1)
    done = nxt == length - 1
    eye = torch.eye(length)
    return Batch(eye[pos], move, done.float(), eye[nxt], done)


def td_target(net, b, gamma):
    with torch.no_grad():
        best = net(b.next_obs).max(1).values  #! also
    return b.reward + gamma * best  #- here
#+     return b.reward + gamma * best * (1 - b.done.float())


torch.manual_seed(32)
q = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
target = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
opt = torch.optim.Adam(q.parameters(), lr=5e-3)
for it in range(120):
    if it % 20 == 0:
        target.load_state_dict(q.state_dict())
    b = corridor(64)
    goal = td_target(target, b, 0.99)  #! also
    loss = nn.functional.smooth_l1_loss(q(b.obs).gather(1, b.action[:, None])[:, 0], goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), q(torch.eye(6)).max(1).values.tolist())
