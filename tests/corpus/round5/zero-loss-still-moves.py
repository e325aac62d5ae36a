# /// case
# title = "A delayed policy is frozen by a zero loss under Adam"
# category = "optimizer"
# kind = "zero-gradient-still-steps"
# kinds_also_ok = ["momentum-moves-frozen"]
# severity = "warning"
# names = ["policy_delay", "actor_loss"]
# symptom = "the actor moves in steps in which it should stay"
# symptom_check = "moved_when_delayed > 0"
# cause = "Adam steps along its running mean even if the gradient is zero"
# fix = "skip the actor's optimizer in those steps"
# evidence = [
#     { url = "https://github.com/ray-project/ray/issues/4672", title = "[rllib] TD3 & DDPG bugs" },
# ]
# ///
import copy

import torch
import torch.nn as nn

torch.manual_seed(28)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 24), nn.ReLU(), nn.Linear(24, o))


class TD3Policy:
    def __init__(self, obs_dim=5, act_dim=2, policy_delay=2, tau=0.01):
        self.actor, self.q1, self.q2 = mlp(obs_dim, act_dim), mlp(obs_dim + act_dim, 1), mlp(obs_dim + act_dim, 1)
        self.targets = copy.deepcopy(nn.ModuleList([self.actor, self.q1, self.q2])).requires_grad_(False)
        self.policy_delay, self.tau, self.global_step = policy_delay, tau, 0
        self.critic_optim = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], lr=3e-3)
        self.actor_optim = torch.optim.Adam(self.actor.parameters(), lr=1e-3)

    def learn(self, obs, act, rew, new_obs, done):
        with torch.no_grad():
            actor_t, q1_t, q2_t = self.targets
            noise = (0.2 * torch.randn_like(act)).clamp(-0.5, 0.5)
            new_act = (torch.tanh(actor_t(new_obs)) + noise).clamp(-1, 1)
            pair = torch.cat([new_obs, new_act], 1)
            target = rew + 0.97 * (1 - done) * torch.min(q1_t(pair), q2_t(pair))
        pair = torch.cat([obs, act], 1)
        critic_loss = (self.q1(pair) - target).square().mean() + (self.q2(pair) - target).square().mean()
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()

        delayed = self.global_step % self.policy_delay != 0
        self.global_step += 1
        before = self.actor[0].weight.detach().clone()
        coef = 0.0 if delayed else 1.0  #- here
        actor_loss = -coef * self.q1(torch.cat([obs, torch.tanh(self.actor(obs))], 1)).mean()  #- here
        self.actor_optim.zero_grad()  #-
        actor_loss.backward()  #-
        self.actor_optim.step()  #- also
#+         if not delayed:
#+             actor_loss = -self.q1(torch.cat([obs, torch.tanh(self.actor(obs))], 1)).mean()
#+             self.actor_optim.zero_grad()
#+             actor_loss.backward()
#+             self.actor_optim.step()
        with torch.no_grad():
            for t, p in zip(self.targets.parameters(), nn.ModuleList([self.actor, self.q1, self.q2]).parameters()):
                t.lerp_(p, self.tau)
        return (self.actor[0].weight - before).abs().max().item() if delayed else 0.0


policy, moved_when_delayed = TD3Policy(), 0.0
for step in range(10):
    obs, act = torch.randn(32, 5), torch.rand(32, 2) * 2 - 1
    rew = -(act - obs[:, :2]).square().sum(1, keepdim=True)
    moved_when_delayed += policy.learn(obs, act, rew, obs + 0.1 * torch.randn(32, 5), (torch.rand(32, 1) < 0.1).float())
print(moved_when_delayed)
