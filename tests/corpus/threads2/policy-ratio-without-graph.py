# /// case
# title = "PPO ratio computed under no_grad while entropy and value train"
# category = "graph-break"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["ratio", "surrogate", "no_grad"]
# symptom = "the clipped surrogate has no grad_fn: the policy is trained by its entropy bonus alone"
# symptom_check = "surrogate.grad_fn is None"
# cause = "ratio is computed inside no_grad"
# fix = "only the old log-probabilities are constants"
# evidence = [
#     { url = "https://github.com/thu-ml/tianshou/issues/742", title = "In PPOPolicy, the ratio is computed with requires_grad `True`." },
# ]
# ///
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=6, n_actions=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs_dim, 24), nn.Tanh())
        self.pi = nn.Linear(24, n_actions)
        self.v = nn.Linear(24, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def collect(net, n=64):
    obs = torch.randn(n, 6)
    with torch.no_grad():
        dist, value = net(obs)
        act = dist.sample()
        reward = (act == (obs[:, 0] > 0).long()).float()
    return {"obs": obs, "act": act, "logp": dist.log_prob(act), "adv": reward - value, "ret": reward}


def minibatches(batch, size):
    for idx in torch.randperm(len(batch["act"])).split(size):
        yield {k: v[idx] for k, v in batch.items()}


def learn(net, optim, batch, eps_clip=0.2, ent_coef=0.01, vf_coef=0.5, repeat=3):
    for _ in range(repeat):
        for mb in minibatches(batch, 16):
            dist, value = net(mb["obs"])
            adv = (mb["adv"] - mb["adv"].mean()) / (mb["adv"].std() + 1e-8)
            with torch.no_grad():  #- here
                ratio = (dist.log_prob(mb["act"]) - mb["logp"]).exp()  #- here
#+             ratio = (dist.log_prob(mb["act"]) - mb["logp"]).exp()
            surr1 = ratio * adv
            surr2 = ratio.clamp(1 - eps_clip, 1 + eps_clip) * adv
            surrogate = -torch.min(surr1, surr2).mean()  #! also
            vf_loss = (mb["ret"] - value).pow(2).mean()
            loss = surrogate + vf_coef * vf_loss - ent_coef * dist.entropy().mean()  #! also
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optim.step()
    return surrogate


torch.manual_seed(21)
net = ActorCritic()
optim = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(2):
    surrogate = learn(net, optim, collect(net))
print(surrogate.item())
