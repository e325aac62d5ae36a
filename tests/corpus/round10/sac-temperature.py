# /// case
# title = "The temperature is computed from log_alpha once, and log_alpha then learns without effect"
# category = "identity"
# kind = "stale-copy-of-parameter"
# kinds_also_ok = ["temperature-computed-once", "cached-value-never-refreshed", "learned-parameter-not-used"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["alpha", "log_alpha"]
# symptom = "log_alpha is driven on and on while the entropy does not come nearer to its target"
# symptom_check = "abs(float(alpha) - 1.0) < 1e-6 and abs(float(log_alpha)) > 0.5"
# cause = "alpha is a copy made before the loop; the losses never see the updated log_alpha."
# fix = "compute alpha inside the loop"
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

cfg = dict(seed=36, steps=200, batch=64, gamma=0.8, tau=0.05, lr=4e-3, alpha_lr=1e-2, target_entropy=-1.0)


def perceptron(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out))


def sample(policy, obs):
    mean, log_std = policy(obs).chunk(2, -1)
    dist = Normal(mean, log_std.clamp(-4, 1).exp())
    u = dist.rsample()
    logp = dist.log_prob(u) - 2 * (0.693147 - u - F.softplus(-2 * u))
    return torch.tanh(u), logp.squeeze(-1)


def q_min(critics, obs, act):
    x = torch.cat([obs, act], -1)
    return torch.min(critics[0](x), critics[1](x)).squeeze(-1)


def valve_log(n):
    level, inflow, valve = torch.rand(n) * 2 - 1, torch.rand(n) - 0.5, torch.rand(n) * 2 - 1
    after = level + 0.4 * inflow - 0.4 * valve
    wrap = lambda x: torch.stack([x, inflow], -1)
    return wrap(level), valve[:, None], -2 * after.square(), wrap(after)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def run(policy, critics, log_alpha, data):
    slow = copy.deepcopy(critics).requires_grad_(False)
    policy_opt = torch.optim.Adam(policy.parameters(), lr=cfg["lr"])
    critic_opt = torch.optim.Adam(critics.parameters(), lr=cfg["lr"])
    alpha_opt = torch.optim.Adam([log_alpha], lr=cfg["alpha_lr"])
    step, log = 0, []
    alpha = log_alpha.exp().detach()  #- here
    while step < cfg["steps"]:  #! also
#+         alpha = log_alpha.exp().detach()
        rows = torch.randint(len(data[0]), (cfg["batch"],))
        obs, act, rew, nxt = (t[rows] for t in data)
        with torch.no_grad():
            act2, logp2 = sample(policy, nxt)
            y = rew + cfg["gamma"] * (q_min(slow, nxt, act2) - alpha * logp2)
        x = torch.cat([obs, act], -1)
        critic_loss = sum(F.mse_loss(q(x).squeeze(-1), y) for q in critics)
        update(critic_opt, critic_loss)
        act, logp = sample(policy, obs)
        policy_loss = (alpha * logp - q_min(critics, obs, act)).mean()  #! also
        update(policy_opt, policy_loss)
        update(alpha_opt, -(log_alpha * (logp.detach() + cfg["target_entropy"])).mean())  #! also
        with torch.no_grad():
            for s, p in zip(slow.parameters(), critics.parameters()):
                s.lerp_(p, cfg["tau"])
        log.append({"critic": critic_loss.item(), "entropy": -logp.mean().item()})
        step += 1
    return alpha, log


torch.manual_seed(cfg["seed"])
policy, critics = perceptron(2, 2), nn.ModuleList([perceptron(3, 1), perceptron(3, 1)])
log_alpha = torch.zeros((), requires_grad=True)
alpha, log = run(policy, critics, log_alpha, valve_log(3000))
print(log[0], log[-1], "log alpha", log_alpha.item())
