# /// case
# title = "The old log-probabilities are those of the present policy"
# category = "loss"
# kind = "ratio-always-one"
# kinds_also_ok = ["clipping-without-effect", "wrong-loss-operand"]
# severity = "warning"
# names = ["old", "ratio"]
# symptom = "all ratios are 1 and nothing is ever clipped"
# symptom_check = "bool((ratio == 1).all())"
# cause = "the old log-probabilities are computed again in each epoch"
# fix = "compute them once, before the epochs"
# evidence = [
#     { url = "https://github.com/lsdefine/simple_GRPO/issues/3", title = "grpo_ref_split.py +178" },
# ]
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Rollout:
    def __init__(self, obs, actions, returns):
        self.obs, self.actions, self.returns = obs, actions, returns
        self.advantage = (returns - returns.mean()) / (returns.std() + 1e-8)


class PPO:
    def __init__(self, policy, clip=0.2, epochs=6, lr=1e-2):
        self.policy, self.clip, self.epochs = policy, clip, epochs
        self.opt = torch.optim.Adam(policy.parameters(), lr=lr)

    def logp(self, obs, actions):
        return Categorical(logits=self.policy(obs)).log_prob(actions)

    def learn(self, data):
#+         with torch.no_grad():
#+             old = self.logp(data.obs, data.actions)
        for _ in range(self.epochs):  #! also
            with torch.no_grad():  #-
                old = self.logp(data.obs, data.actions)  #- here
            ratio = (self.logp(data.obs, data.actions) - old).exp()  #! also
            clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
            loss = -torch.min(ratio * data.advantage, clipped * data.advantage).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item(), ratio.detach()


torch.manual_seed(38)
algo = PPO(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)))
for it in range(4):
    obs = torch.randn(128, 4)
    with torch.no_grad():
        actions = Categorical(logits=algo.policy(obs)).sample()
    value, ratio = algo.learn(Rollout(obs, actions, obs.gather(1, actions[:, None])[:, 0]))
    print(it, value, ratio.min().item(), ratio.max().item())
