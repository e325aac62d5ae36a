# /// case
# title = "Target network is loaded from itself"
# category = "identity"
# kind = "target-network-never-updated"
# kinds_also_ok = ["copy-onto-itself", "self-copy", "target-network-alias"]
# severity = "warning"
# names = ["target_qmix_net", "eval_qmix_net", "load_state_dict"]
# symptom = "the target mixer keeps its random weights"
# symptom_check = "torch.equal(born, policy.target_qmix_net.w1.weight)"
# cause = "its own state is loaded into it"
# fix = "load the state of the trained mixer"
# evidence = [
#     { url = "https://github.com/thesouther/MARL/issues/8", title = "目标网络更新bug" },
# ]
# ///
import torch
import torch.nn as nn


class QMixer(nn.Module):
    def __init__(self, n_agents, state_dim, hidden=16):
        super().__init__()
        self.n_agents, self.hidden = n_agents, hidden
        self.w1, self.b1 = nn.Linear(state_dim, n_agents * hidden), nn.Linear(state_dim, hidden)
        self.w2, self.b2 = nn.Linear(state_dim, hidden), nn.Linear(state_dim, 1)

    def forward(self, q_values, state):
        w1 = self.w1(state).abs().view(-1, self.n_agents, self.hidden)
        h = torch.nn.functional.elu(torch.bmm(q_values.unsqueeze(1), w1).squeeze(1) + self.b1(state))
        return (h * self.w2(state).abs()).sum(1) + self.b2(state).squeeze(1)


class Policy:
    def __init__(self, n_agents=3, obs=4, acts=5, state=6, target_update_cycle=3):
        self.eval_net, self.target_net = nn.Linear(obs, acts), nn.Linear(obs, acts)
        self.eval_qmix_net, self.target_qmix_net = QMixer(n_agents, state), QMixer(n_agents, state)
        self.cycle = target_update_cycle
        self.sync()
        self.parameters = [*self.eval_net.parameters(), *self.eval_qmix_net.parameters()]
        self.optimizer = torch.optim.RMSprop(self.parameters, lr=5e-3)

    def sync(self):
        self.target_net.load_state_dict(self.eval_net.state_dict())
        self.target_qmix_net.load_state_dict(self.target_qmix_net.state_dict())  #- here
#+         self.target_qmix_net.load_state_dict(self.eval_qmix_net.state_dict())

    def learn(self, batch, train_step):
        q = self.eval_net(batch["o"]).gather(2, batch["u"].unsqueeze(2)).squeeze(2)
        total = self.eval_qmix_net(q, batch["s"])
        with torch.no_grad():
            q_next = self.target_net(batch["o2"]).max(2).values
            target = batch["r"] + 0.95 * self.target_qmix_net(q_next, batch["s2"])  #! also
        loss = (total - target).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 10)
        self.optimizer.step()
        if train_step % self.cycle == 0:
            self.sync()  #! also


torch.manual_seed(60)
policy = Policy()
born = policy.target_qmix_net.w1.weight.clone()
for step in range(1, 10):
    policy.learn({"o": torch.randn(8, 3, 4), "o2": torch.randn(8, 3, 4), "u": torch.randint(0, 5, (8, 3)),
                  "s": torch.randn(8, 6), "s2": torch.randn(8, 6), "r": torch.randn(8)}, step)
