# /// case
# title = "Result of next_q.detach() is thrown away"
# category = "rl-ssl-stopgrad"
# kind = "missing-detach"
# severity = "warning"
# severity_by_writer = "error"
# names = ["next_q", "detach", "td_target"]
# difficulty = "medium"
# symptom = "the bootstrapped target is trained as well (residual gradient instead of semi-gradient); no message"
# symptom_check = "td_target(*replay(4)[2:]).requires_grad"
# cause = "detach() is not an in-place operation; its result is not used"
# fix = "assign the result"
# evidence = [{ url = "https://github.com/oreilly-japan/deep-learning-from-scratch-4/issues/13" }, { url = "https://github.com/philtabor/Deep-Q-Learning-Paper-To-Code/issues/16" }, { url = "https://github.com/datawhalechina/easy-rl/pull/117" }]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

STATES, ACTIONS, GAMMA = 8, 2, 0.9

torch.manual_seed(0)
qnet = nn.Sequential(nn.Linear(STATES, 32), nn.ReLU(), nn.Linear(32, ACTIONS))
opt = torch.optim.Adam(qnet.parameters(), lr=5e-3)


def encode(s):
    return F.one_hot(s, STATES).float()


def replay(n):
    """Transitions of a chain; the right end pays 1 and ends the episode."""
    s = torch.randint(0, STATES - 1, (n,))
    a = torch.randint(0, ACTIONS, (n,))
    s2 = (s + 2 * a - 1).clamp(min=0)
    done = (s2 == STATES - 1).float()
    return s, a, done, s2, done


def td_target(reward, s2, done):
    next_q = qnet(encode(s2)).amax(dim=1)  #! here
    next_q.detach()  #- here
#+     next_q = next_q.detach()
    return reward + GAMMA * (1 - done) * next_q  #! here


for it in range(80):
    s, a, reward, s2, done = replay(32)
    q = qnet(encode(s)).gather(1, a[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(q, td_target(reward, s2, done))  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()

with torch.no_grad():
    print(qnet(torch.eye(STATES)).argmax(dim=1).tolist())
