# /// case
# title = "One-hot of the argmax enters the critic without the straight-through term"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# kinds_also_ok = ["graph-break-argmax"]
# severity = "warning"
# names = ["one_hot", "argmax", "action"]
# symptom = "the critic's opinion never reaches the policy: only the entropy part trains it"
# symptom_check = "action.grad_fn is None"
# cause = "argmax and one_hot have no derivative"
# fix = "(hard - soft).detach() + soft"
# evidence = [
#     { url = "https://github.com/kengz/SLM-Lab/pull/422", title = "use Straight-Through Gumbel Softmax" },
#     { url = "https://github.com/pytorch/pytorch/issues/68941", title = "Is the trick for hard gumbel_softmax is correct?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
N_ACTIONS, OBS = 4, 5

policy = nn.Sequential(nn.Linear(OBS, 32), nn.ReLU(), nn.Linear(32, N_ACTIONS))
critic = nn.Sequential(nn.Linear(OBS + N_ACTIONS, 32), nn.ReLU(), nn.Linear(32, 1))
pi_optim = torch.optim.Adam(policy.parameters(), lr=3e-3)
q_optim = torch.optim.Adam(critic.parameters(), lr=3e-3)
ALPHA = 0.05


def gumbel(logits, tau=1.0):
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp_min(1e-9)))
    return F.softmax((logits + noise) / tau, dim=-1)


def guard_q(state, action):
    return critic(torch.cat([state, action], dim=-1))


def calc_q_loss(state):
    taken = torch.randint(0, N_ACTIONS, (len(state),))
    reward = (taken == state[:, :N_ACTIONS].argmax(-1)).float().unsqueeze(1)
    return F.mse_loss(guard_q(state, F.one_hot(taken, N_ACTIONS).float()), reward)


def calc_policy_loss(state):
    logits = policy(state)
    soft = gumbel(logits)
    action = F.one_hot(soft.argmax(-1), N_ACTIONS).float()  #- here
#+     hard = F.one_hot(soft.argmax(-1), N_ACTIONS).float()
#+     action = (hard - soft).detach() + soft
    log_prob = (logits.log_softmax(-1) * action).sum(-1, keepdim=True)
    return ALPHA * log_prob - guard_q(state, action), action  #! also


for frame in range(10):
    state = torch.randn(24, OBS)
    q_optim.zero_grad()
    calc_q_loss(state).backward()
    q_optim.step()

    losses, action = calc_policy_loss(state)
    pi_optim.zero_grad()
    losses.mean().backward()
    pi_optim.step()
print(losses.mean().item())
