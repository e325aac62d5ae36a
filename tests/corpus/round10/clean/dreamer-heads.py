import torch
from torch import nn
from torch.distributions import Normal, kl_divergence


class WorldModel(nn.Module):
    def __init__(self, obs, act, latent=6, width=32):
        super().__init__()
        self.cell = nn.GRUCell(latent + act, width)
        self.prior = nn.Linear(width, 2 * latent)
        self.post = nn.Linear(width + obs, 2 * latent)
        self.decode = nn.Linear(width + latent, obs)
        self.width, self.latent = width, latent

    @staticmethod
    def normal(stats):
        mean, raw = stats.chunk(2, -1)
        return Normal(mean, nn.functional.softplus(raw) + 0.1)

    def observe(self, obs, act):
        h, z = torch.zeros(len(obs), self.width), torch.zeros(len(obs), self.latent)
        features, kl = [], 0.0
        for t in range(obs.shape[1]):
            h = self.cell(torch.cat([z, act[:, t]], -1), h)
            prior, post = self.normal(self.prior(h)), self.normal(self.post(torch.cat([h, obs[:, t]], -1)))
            z = post.rsample()
            frozen = Normal(post.mean.detach(), post.stddev.detach())
            kl = kl + 0.8 * kl_divergence(frozen, prior).sum(-1) + 0.2 * kl_divergence(post, Normal(prior.mean.detach(), prior.stddev.detach())).sum(-1)
            features.append(torch.cat([h, z], -1))
        return torch.stack(features, 1), kl.mean() / obs.shape[1]


def episodes(n, length=8):
    act = torch.rand(n, length, 2) * 2 - 1
    path = 0.4 * act.cumsum(1)
    obs = torch.cat([path, path.sin()], -1) + 0.02 * torch.randn(n, length, 4)
    return obs, act, -path.square().sum(-1, keepdim=True)


torch.manual_seed(95)
obs, act, rew = episodes(200)
world, reward_head = WorldModel(4, 2), nn.Sequential(nn.Linear(38, 32), nn.ELU(), nn.Linear(32, 1))
world_opt = torch.optim.Adam(world.parameters(), lr=4e-3)
reward_opt = torch.optim.Adam(reward_head.parameters(), lr=1e-2)
log = []
for it in range(45):
    rows = torch.randint(200, (32,))
    features, kl = world.observe(obs[rows], act[rows])
    model_loss = (world.decode(features) - obs[rows]).square().sum(-1).mean() + 0.05 * kl
    reward_loss = (reward_head(features) - rew[rows]).square().mean()
    world_opt.zero_grad()
    reward_opt.zero_grad()
    model_loss.backward(retain_graph=True)
    reward_loss.backward()
    nn.utils.clip_grad_norm_(world.parameters(), 10.0)
    world_opt.step()
    reward_opt.step()
    log.append((model_loss.item(), reward_loss.item()))
print(log[0], log[-1])
