# /// case
# title = "The target network loads its own weights"
# category = "identity"
# kind = "target-never-updated"
# severity = "warning"
# severity_by_writer = "error"
# names = ["target_qmix_net", "load_state_dict"]
# symptom = "the target stays as it was initialised"
# symptom_check = "all(torch.equal(a, b) for a, b in zip(initial, policy.target_qmix_net.parameters()))"
# cause = "the source of the copy is the target"
# fix = "load the evaluated network's"
# evidence = [
#     { url = "https://github.com/thesouther/MARL/issues/8", title = "目标网络更新bug" },
# ]
# ///
import torch
import torch.nn as nn


class QMixNet(nn.Module):
    def __init__(self, n_agents=3, state=6, embed=16):
        super().__init__()
        self.hyper_w1, self.hyper_b1 = nn.Linear(state, n_agents * embed), nn.Linear(state, embed)
        self.hyper_w2, self.hyper_b2 = nn.Linear(state, embed), nn.Linear(state, 1)
        self.n_agents, self.embed = n_agents, embed

    def forward(self, q_values, states):
        w1 = self.hyper_w1(states).abs().view(-1, self.n_agents, self.embed)
        hidden = nn.functional.elu(torch.bmm(q_values[:, None], w1).squeeze(1) + self.hyper_b1(states))
        w2 = self.hyper_w2(states).abs()
        return (hidden * w2).sum(1, keepdim=True) + self.hyper_b2(states)


class QMix:
    def __init__(self, target_update_cycle=5):
        self.eval_rnn, self.target_rnn = nn.Linear(8, 4), nn.Linear(8, 4)
        self.eval_qmix_net, self.target_qmix_net = QMixNet(), QMixNet()
        self.target_rnn.load_state_dict(self.eval_rnn.state_dict())
        self.target_qmix_net.load_state_dict(self.eval_qmix_net.state_dict())
        for net in (self.target_rnn, self.target_qmix_net):
            net.requires_grad_(False)
        self.cycle = target_update_cycle
        self.eval_parameters = [*self.eval_rnn.parameters(), *self.eval_qmix_net.parameters()]
        self.optimizer = torch.optim.RMSprop(self.eval_parameters, lr=1e-3)

    def learn(self, batch, train_step):
        obs, act, r, obs2, s, s2 = batch
        q = self.eval_rnn(obs).gather(2, act[..., None]).squeeze(2)
        q2 = self.target_rnn(obs2).max(2).values
        targets = r + 0.99 * self.target_qmix_net(q2, s2)
        td_error = targets.detach() - self.eval_qmix_net(q, s)
        loss = td_error.square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.eval_parameters, 10)
        self.optimizer.step()
        if train_step > 0 and train_step % self.cycle == 0:
            self.target_rnn.load_state_dict(self.eval_rnn.state_dict())
            self.target_qmix_net.load_state_dict(self.target_qmix_net.state_dict())  #- here
#+             self.target_qmix_net.load_state_dict(self.eval_qmix_net.state_dict())
        return loss.item()


torch.manual_seed(20)
policy = QMix()
initial = [p.clone() for p in policy.target_qmix_net.parameters()]
for step in range(12):
    batch = (torch.randn(16, 3, 8), torch.randint(0, 4, (16, 3)), torch.randn(16, 1), torch.randn(16, 3, 8),
             torch.randn(16, 6), torch.randn(16, 6))
    loss = policy.learn(batch, step)
print(loss)
