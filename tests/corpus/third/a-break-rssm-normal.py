# /// case
# title = "Latent state is drawn with torch.normal(mean, std)"
# category = "graph-break"
# kind = "graph-break-non-reparameterised-sample"
# severity = "warning"
# severity_by_writer = "error"
# names = ["draw", "normal", "mean", "std"]
# difficulty = "hard"
# symptom = "reconstruction loss has zero gradient for the encoder; only the KL term reaches it (posterior collapses)"
# symptom_check = "(lambda m: float(torch.autograd.grad(draw(m, torch.ones_like(m)).sum(), m)[0].abs().sum()) == 0.0)(torch.zeros(2, 3, requires_grad=True))"
# cause = "torch.normal is differentiable in form only; its derivatives with respect to mean and std are zero"
# fix = "reparameterise, mean + std * noise"
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/4620" }, { url = "https://github.com/Unity-Technologies/ml-agents/pull/5546" }]
# ///
"""Small recurrent state-space model (deterministic GRU path, stochastic latent)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence


def draw(mean, std):
    return torch.normal(mean, std)  #- here
#+     return mean + std * torch.randn_like(std)


class RSSM(nn.Module):
    def __init__(self, obs=6, act=2, det=24, sto=4):
        super().__init__()
        self.det, self.sto = det, sto
        self.embed = nn.Sequential(nn.Linear(obs, 24), nn.ELU())
        self.cell = nn.GRUCell(sto + act, det)
        self.prior_net = nn.Linear(det, 2 * sto)
        self.post_net = nn.Linear(det + 24, 2 * sto)
        self.decoder = nn.Sequential(nn.Linear(det + sto, 32), nn.ELU(), nn.Linear(32, obs))

    @staticmethod
    def gaussian(stats):
        mean, raw = stats.chunk(2, dim=-1)
        return Normal(mean, F.softplus(raw) + 0.1)

    def forward(self, obs, act):
        batch, steps = obs.shape[:2]
        h = obs.new_zeros(batch, self.det)
        s = obs.new_zeros(batch, self.sto)
        recon, kl = [], []
        for t in range(steps):
            h = self.cell(torch.cat([s, act[:, t]], dim=-1), h)
            prior = self.gaussian(self.prior_net(h))
            post = self.gaussian(self.post_net(torch.cat([h, self.embed(obs[:, t])], dim=-1)))
            s = draw(post.mean, post.stddev)  #! also
            recon.append(self.decoder(torch.cat([h, s], dim=-1)))
            kl.append(kl_divergence(post, prior).sum(dim=-1))
        return torch.stack(recon, dim=1), torch.stack(kl, dim=1)


def rollout(n, steps=8):
    act = torch.randn(n, steps, 2)
    x = torch.cumsum(act, dim=1) * 0.3
    view = torch.tensor([[1.0, 0.5, -1.0, 0.2, 0.0, 2.0], [0.0, 1.0, 0.3, -1.0, 0.7, 0.1]])
    return torch.tanh(x @ view), act


torch.manual_seed(0)
model = RSSM()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(8):
    obs, act = rollout(16)
    recon, kl = model(obs, act)
    loss = F.mse_loss(recon, obs) + 0.01 * kl.clamp(min=0.1).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    opt.step()
print(f"loss {loss.item():.4f}")
