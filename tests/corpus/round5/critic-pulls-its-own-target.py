# /// case
# title = "The critic's loss goes back through its target"
# category = "loss"
# kind = "target-not-detached"
# kinds_also_ok = ["missing-detach"]
# severity = "warning"
# names = ["advantages", "td_error", "critic_loss"]
# symptom = "values of later states are moved towards earlier errors"
# symptom_check = "not torch.allclose(critic_grad, regression_grad, atol=1e-6)"
# cause = "GAE keeps the graph of the value predictions, and its square is the critic's loss"
# fix = "detach the returns and regress on them"
# evidence = [
#     { url = "https://github.com/Farama-Foundation/Gymnasium/issues/1494", title = "[Bug Report] Incorrect A2C implementation" },
#     { url = "https://github.com/philtabor/Deep-Q-Learning-Paper-To-Code/issues/16", title = "No gradient required for q_target calculation" },
# ]
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(53)


class A2C(nn.Module):
    def __init__(self, n_features, n_actions, n_envs):
        super().__init__()
        self.n_envs = n_envs
        self.critic = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 1))
        self.actor = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, n_actions))
        self.critic_optim = torch.optim.RMSprop(self.critic.parameters(), lr=1e-3)
        self.actor_optim = torch.optim.RMSprop(self.actor.parameters(), lr=1e-3)

    def select_action(self, x):
        dist = Categorical(logits=self.actor(x))
        action = dist.sample()
        return action, dist.log_prob(action), self.critic(x).squeeze(-1), dist.entropy()

    def get_losses(self, rewards, log_probs, value_preds, entropy, masks, gamma=0.95, lam=0.9, ent_coef=0.01):
        T = len(rewards)
        advantages = torch.zeros(T, self.n_envs)
        gae = torch.zeros(self.n_envs)
        for t in reversed(range(T - 1)):
            td_error = rewards[t] + gamma * masks[t] * value_preds[t + 1] - value_preds[t]
            gae = td_error + gamma * lam * masks[t] * gae  #- here
#+             gae = (td_error + gamma * lam * masks[t] * gae).detach()
            advantages[t] = gae
        critic_loss = advantages[:-1].pow(2).mean()  #- here
#+         returns = (advantages + value_preds).detach()
#+         critic_loss = (returns - value_preds)[:-1].pow(2).mean()
        actor_loss = -(advantages.detach() * log_probs).mean() - ent_coef * entropy.mean()
        return critic_loss, actor_loss, advantages


agent, n_steps = A2C(5, 3, n_envs=4), 12
for phase in range(4):
    states, records = torch.randn(4, 5), []
    for _ in range(n_steps):
        action, logp, value, ent = agent.select_action(states)
        reward = (action == states[:, :3].argmax(1)).float()
        records.append((reward, logp, value, ent, (torch.rand(4) > 0.1).float()))
        states = 0.9 * states + 0.3 * torch.randn(4, 5)
    rewards, logps, values, ents, masks = (torch.stack(r) for r in zip(*records))
    critic_loss, actor_loss, adv = agent.get_losses(rewards, logps, values, ents, masks)
    plain = ((adv + values).detach() - values)[:-1].pow(2).mean()
    regression_grad = torch.autograd.grad(plain, agent.critic[2].weight, retain_graph=True)[0]
    for optim, loss in ((agent.critic_optim, critic_loss), (agent.actor_optim, actor_loss)):
        optim.zero_grad()
        loss.backward()
        if optim is agent.critic_optim:
            critic_grad = agent.critic[2].weight.grad.clone()
        optim.step()
print(critic_loss.item(), actor_loss.item())
