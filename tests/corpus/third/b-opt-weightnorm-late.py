# /// case
# title = "Weight normalisation is applied after the optimizer was built"
# category = "optimizer-wiring"
# kind = "optimizer-holds-stale-parameters"
# severity = "warning"
# severity_by_writer = "error"
# names = ["weight_norm", "opt_d", "critic"]
# difficulty = "hard"
# symptom = "Biases of the critic train, its weights do not; silent."
# symptom_check = "not ({id(p) for p in estimator.critic.parameters()} <= {id(p) for g in estimator.opt_d.param_groups for p in g['params']})"
# cause = "weight_norm replaces weight by the new parameters original0/original1; the optimizer still holds the removed weight."
# fix = "Apply weight_norm before the optimizer is built."
# evidence = [{ url = "https://github.com/pytorch/pytorch/pull/103001" }, { url = "https://github.com/facebookresearch/fairseq/issues/140" }]
# ///
"""Energy critic for density-ratio estimation, with weight normalisation."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Critic(nn.Module):
    def __init__(self, dim=2, width=32):
        super().__init__()
        self.l1 = nn.Linear(dim, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, 1)

    def forward(self, x):
        x = F.leaky_relu(self.l1(x), 0.2)
        x = F.leaky_relu(self.l2(x), 0.2)
        return self.l3(x).squeeze(-1)


def normalise(module):
    for child in module.children():
        if isinstance(child, nn.Linear):
            weight_norm(child)  #! here


class RatioEstimator:
    def __init__(self, lr=5e-3):
        self.critic = Critic()
#+         normalise(self.critic)
        self.opt_d = torch.optim.Adam(self.critic.parameters(), lr=lr)  #! here
        normalise(self.critic)  #- here
        self.history = []

    def step(self, p, q):
        logit_p, logit_q = self.critic(p), self.critic(q)
        loss = F.softplus(-logit_p).mean() + F.softplus(logit_q).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()  #! also
        self.history.append(loss.item())


torch.manual_seed(0)
estimator = RatioEstimator()
for it in range(40):
    p = torch.randn(96, 2) * 0.5 + torch.tensor([1.0, 0.0])
    q = torch.randn(96, 2)
    estimator.step(p, q)
print(estimator.history[0], estimator.history[-1])
