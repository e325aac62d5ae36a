import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.actor_mean = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, act))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act))
        self.critic = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, 1))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


envs, steps, gamma, lam = 4, 8, 0.99, 0.95
agent = Agent(3, 2)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
state = torch.randn(envs, 3)
for update in range(2):
    optimizer.param_groups[0]["lr"] = 3e-4 * (1.0 - update / 2)
    obs, actions = torch.zeros(steps, envs, 3), torch.zeros(steps, envs, 2)
    logprobs, rewards, values = torch.zeros(steps, envs), torch.zeros(steps, envs), torch.zeros(steps, envs)
    for step in range(steps):
        obs[step] = state
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(state)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        rewards[step] = -(action.pow(2).sum(1) + state.pow(2).sum(1))
        state = 0.9 * state + 0.1 * torch.randn(envs, 3)
    with torch.no_grad():
        following = agent.get_value(state).reshape(1, -1)
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            ahead = following[0] if t == steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * ahead - values[t]
            advantages[t] = last = delta + gamma * lam * last
        returns = advantages + values
    b_obs, b_act = obs.reshape(-1, 3), actions.reshape(-1, 2)
    b_logprob, b_adv, b_ret = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    for _epoch in range(2):
        for inds in torch.randperm(envs * steps).split(16):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[inds], b_act[inds])
            logratio = newlogprob - b_logprob[inds]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = (b_adv[inds] - b_adv[inds].mean()) / (b_adv[inds].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_ret[inds]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > 0.5:
            break
