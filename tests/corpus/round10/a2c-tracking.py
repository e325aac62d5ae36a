# /// case
# title = "The policy's loss also goes through the advantage into the critic"
# category = "loss"
# kind = "advantage-not-detached"
# kinds_also_ok = ["policy-loss-trains-critic", "missing-detach", "critic-gets-policy-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["advantage", "actor_loss", "detach", "critic"]
# symptom = "the critic's values drift away from the targets and training is unstable"
# symptom_check = "any(g is not None for g in torch.autograd.grad(learner.losses(*batch)[0], list(learner.critic.parameters()), allow_unused=True))"
# cause = "advantage depends on the critic, and the policy's loss is differentiated through it."
# fix = "advantage.detach() in the actor's loss"
# ///
import torch
from torch import nn
from torch.distributions import Normal


class TrackingEnvs:
    def __init__(self, count):
        self.count = count
        self.reset()

    def reset(self):
        self.error = torch.randn(self.count)
        self.phase = torch.rand(self.count) * 6.28

    def observe(self):
        return torch.stack([self.error, self.phase.sin(), self.phase.cos()], dim=-1)

    def step(self, action):
        self.error = 0.9 * self.error + 0.5 * action.squeeze(-1).clamp(-2, 2) + 0.2 * self.phase.sin()
        self.phase = self.phase + 0.3
        return -self.error.square().clamp(max=9.0)


class ActorCritic:
    def __init__(self, obs_dim, gamma=0.9, beta=1e-3):
        self.gamma, self.beta = gamma, beta
        self.actor = nn.Sequential(nn.Linear(obs_dim, 24), nn.Tanh(), nn.Linear(24, 2))
        self.critic = nn.Sequential(nn.Linear(obs_dim, 24), nn.Tanh(), nn.Linear(24, 1))
        self.optimizer = torch.optim.RMSprop([*self.actor.parameters(), *self.critic.parameters()], lr=5e-3)

    def distribution(self, obs):
        mean, log_std = self.actor(obs).unbind(-1)
        return Normal(mean, log_std.clamp(-3, 0.5).exp())

    @torch.no_grad()
    def targets(self, reward, following):
        return reward + self.gamma * self.critic(following).squeeze(-1)

    def losses(self, obs, action, reward, following):
        dist = self.distribution(obs)
        advantage = self.targets(reward, following) - self.critic(obs).squeeze(-1)  #! also
        actor_loss = -(dist.log_prob(action) * advantage).mean()  #- here
#+         actor_loss = -(dist.log_prob(action) * advantage.detach()).mean()
        critic_loss = advantage.square().mean()
        return actor_loss - self.beta * dist.entropy().mean(), critic_loss

    def learn(self, batch):
        actor_loss, critic_loss = self.losses(*batch)
        total = actor_loss + 0.5 * critic_loss
        self.optimizer.zero_grad()
        total.backward()  #! also
        self.optimizer.step()
        return critic_loss.item()


def collect(envs, learner):
    obs = envs.observe()
    with torch.no_grad():
        action = learner.distribution(obs).sample()
    reward = envs.step(action.unsqueeze(-1))
    return obs, action, reward, envs.observe()


torch.manual_seed(12)
envs, learner, scores = TrackingEnvs(64), ActorCritic(3), []
for update in range(400):
    if update % 25 == 0:
        envs.reset()
    batch = collect(envs, learner)
    loss = learner.learn(batch)
    scores.append(batch[2].mean().item())
print("reward", sum(scores[:50]) / 50, "->", sum(scores[-50:]) / 50, "critic", loss)
