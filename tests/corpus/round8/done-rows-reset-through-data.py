# /// case
# title = "The recurrent state of finished episodes is reset through .data between forward and backward"
# category = "in-place"
# kind = "data-write-before-backward"
# kinds_also_ok = ["silent-in-place", "saved-tensor-changed-by-data"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["data", "hidden", "done"]
# symptom = "gradients flow through the reset into the steps before it"
# symptom_check = "bool(entry.grad.abs().sum() > 0)"
# cause = "The write through .data is unseen by autograd, so that the backward passes the reset as if it were not there, with changed saved values."
# fix = "multiply with a mask"
# ///
import torch
import torch.nn as nn


class RecurrentPolicy(nn.Module):
    def __init__(self, observation=4, hidden=12, actions=2):
        super().__init__()
        self.cell = nn.GRUCell(observation, hidden)
        self.logits = nn.Linear(hidden, actions)
        self.value = nn.Linear(hidden, 1)
        self.hidden = hidden

    def unroll(self, observations, done, hidden):
        logits, values = [], []
        for obs, ended in zip(observations, done):
            hidden = self.cell(obs, hidden)
            logits.append(self.logits(hidden))
            values.append(self.value(hidden).squeeze(1))
            hidden.data[ended] = 0.0  #- here
#+             hidden = hidden * (~ended).unsqueeze(1)
        return torch.stack(logits), torch.stack(values)


def returns(reward, done, gamma=0.9):
    out, running = [], torch.zeros(reward.shape[1])
    for r, d in zip(reward.flip(0), done.flip(0)):
        running = r + gamma * running * (~d)
        out.append(running)
    return torch.stack(out).flip(0)


torch.manual_seed(68)
policy = RecurrentPolicy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for update in range(8):
    observations = torch.randn(10, 6, 4)
    done = torch.rand(10, 6) < 0.15
    entry = torch.zeros(6, policy.hidden, requires_grad=True)
    logits, values = policy.unroll(observations, done, entry)
    action = torch.distributions.Categorical(logits=logits.detach()).sample()
    goal = returns((action == (observations[..., 0] > 0)).float(), done)
    log_prob = torch.distributions.Categorical(logits=logits).log_prob(action)
    loss = -(log_prob * (goal - values).detach()).mean() + 0.5 * (values - goal).square().mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(update, loss.item())

policy.zero_grad()
entry = torch.zeros(3, policy.hidden, requires_grad=True)
ended = torch.zeros(4, 3, dtype=torch.bool)
ended[0] = True
policy.unroll(torch.randn(4, 3, 4), ended, entry)[1][1:].sum().backward()
