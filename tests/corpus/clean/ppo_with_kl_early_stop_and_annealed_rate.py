import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(2)


def layer_init(layer, std=2**0.5, bias=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor_mean = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=0.01))
        self.actor_logstd = nn.Parameter(torch.zeros(1, 1))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
num_updates, steps, envs, target_kl = 4, 16, 4, 0.5
next_obs, next_done = torch.randn(envs, 3), torch.zeros(envs)
for update in range(1, num_updates + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / num_updates) * 3e-4
    obs, actions = torch.zeros(steps, envs, 3), torch.zeros(steps, envs, 1)
    logprobs, rewards, dones, values = (torch.zeros(steps, envs) for _ in range(4))
    for step in range(steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        rewards[step] = -(action.squeeze(1) - next_obs[:, 0]).abs()
        next_obs, next_done = torch.randn(envs, 3), (torch.rand(envs) < 0.1).float()
    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            nonterminal = 1.0 - (next_done if t == steps - 1 else dones[t + 1])
            nv = next_value if t == steps - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * nv * nonterminal - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * nonterminal * last
        returns = advantages + values
    b_obs, b_act = obs.reshape(-1, 3), actions.reshape(-1, 1)
    b_logp, b_adv, b_ret, b_val = (x.reshape(-1) for x in (logprobs, advantages, returns, values))
    for epoch in range(3):
        for mb in torch.randperm(steps * envs).chunk(2):
            _, newlogp, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_act[mb])
            logratio = newlogp - b_logp[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
            newvalue = newvalue.view(-1)
            v_clipped = b_val[mb] + (newvalue - b_val[mb]).clamp(-0.2, 0.2)
            v_loss = 0.5 * torch.max((newvalue - b_ret[mb]) ** 2, (v_clipped - b_ret[mb]) ** 2).mean()
            loss = pg_loss - 0.0 * entropy.mean() + 0.5 * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > target_kl:
            break
    print(update, v_loss.item(), approx_kl.item())
