"""BP303 graph-built-once: also values that are computed once from what an optimizer changes."""

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

PROGRAMS = {
    "a temperature that is computed before the loop": HEAD
    + """
def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def run(policy, log_alpha, batches):
    policy_opt = torch.optim.SGD(policy.parameters(), lr=0.1)
    alpha_opt = torch.optim.SGD([log_alpha], lr=0.1)
    alpha = log_alpha.exp().detach()  # <- BP303
    for x in batches:
        logp = policy(x).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        update(policy_opt, (logp[:, 0] - alpha * entropy).mean())
        update(alpha_opt, (log_alpha * (entropy.detach() - 0.5)).mean())

run(nn.Linear(4, 3), torch.zeros((), requires_grad=True), torch.randn(8, 16, 4))
""",
    "a number in an attribute, made in the constructor": HEAD
    + """
class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 3)
        self.raw = torch.zeros(1, requires_grad=True)
        self.alpha = F.softplus(self.raw).item()  # <- BP303
        self.policy_opt = torch.optim.SGD(self.policy.parameters(), lr=0.1)
        self.alpha_opt = torch.optim.SGD([self.raw], lr=0.1)

    def learn(self, x):
        logp = self.policy(x).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        loss = (logp[:, 0] - self.alpha * entropy).mean()
        self.policy_opt.zero_grad()
        loss.backward()
        self.policy_opt.step()
        self.alpha_opt.zero_grad()
        (self.raw * (entropy.detach() - 0.5).mean()).sum().backward()
        self.alpha_opt.step()

agent = Agent()
for x in torch.randn(8, 16, 4):
    agent.learn(x)
""",
    "weights of two losses, under no_grad, in a closure": HEAD
    + """
def make_step(net, scores):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    score_opt = torch.optim.SGD([scores], lr=0.1)
    with torch.no_grad():
        share = scores.softmax(0)  # <- BP303

    def step(x):
        out = net(x)
        losses = torch.stack([out[:, 0].pow(2).mean(), (out[:, 1] - 1).pow(2).mean()])
        opt.zero_grad()
        total = (share * losses).sum()
        total.backward()
        opt.step()
        score_opt.zero_grad()
        (scores * losses.detach()).sum().backward()
        score_opt.step()

    return step

step = make_step(nn.Linear(4, 2), torch.zeros(2, requires_grad=True))
for x in torch.randn(8, 16, 4):
    step(x)
""",
    "right: computed in the loop": HEAD
    + """
policy, log_alpha = nn.Linear(4, 3), torch.zeros((), requires_grad=True)
policy_opt = torch.optim.SGD(policy.parameters(), lr=0.1)
alpha_opt = torch.optim.SGD([log_alpha], lr=0.1)
for x in torch.randn(8, 16, 4):
    alpha = log_alpha.exp().detach()
    logp = policy(x).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    loss = (logp[:, 0] - alpha * entropy).mean()
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()
    alpha_opt.zero_grad()
    (log_alpha * (entropy.detach() - 0.5)).mean().backward()
    alpha_opt.step()
""",
    "right: where it began is kept beside what it is": HEAD
    + """
net, log_scale = nn.Linear(4, 1), torch.zeros((), requires_grad=True)
opt = torch.optim.SGD([*net.parameters(), log_scale], lr=0.1)
start = log_scale.exp().detach()
for x in torch.randn(8, 16, 4):
    scale = log_scale.exp()
    loss = (net(x) / scale).pow(2).mean() + scale.log() + (scale - start).pow(2)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the value is refreshed by a method": HEAD
    + """
class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 3)
        self.log_alpha = torch.zeros((), requires_grad=True)
        self.alpha = self.log_alpha.exp().item()
        self.policy_opt = torch.optim.SGD(self.policy.parameters(), lr=0.1)
        self.alpha_opt = torch.optim.SGD([self.log_alpha], lr=0.1)

    def learn(self, x):
        logp = self.policy(x).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        loss = (logp[:, 0] - self.alpha * entropy).mean()
        self.policy_opt.zero_grad()
        loss.backward()
        self.policy_opt.step()
        self.alpha_opt.zero_grad()
        (self.log_alpha * (entropy.detach() - 0.5)).mean().backward()
        self.alpha_opt.step()
        self.alpha = self.log_alpha.exp().item()

agent = Agent()
for x in torch.randn(8, 16, 4):
    agent.learn(x)
""",
    "right: one phase after another, each with what it found": HEAD
    + """
net, log_scale = nn.Linear(4, 1), torch.zeros((), requires_grad=True)
opt = torch.optim.SGD([log_scale], lr=0.1)
for x in torch.randn(5, 16, 4):
    opt.zero_grad()
    (log_scale - x.std().log()).pow(2).backward()
    opt.step()
scale = log_scale.exp().detach()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(5, 16, 4):
    opt.zero_grad()
    (net(x / scale) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    opt.step()
""",
    "right: it begins at the parameter, and a schedule goes on from there": HEAD
    + """
policy, log_alpha = nn.Linear(4, 3), torch.zeros((), requires_grad=True)
policy_opt = torch.optim.SGD(policy.parameters(), lr=0.1)
alpha_opt = torch.optim.SGD([log_alpha], lr=0.1)
alpha = log_alpha.exp().detach()
for x in torch.randn(8, 16, 4):
    logp = policy(x).log_softmax(-1)
    entropy = -(logp.exp() * logp).sum(-1)
    loss = (logp[:, 0] - alpha * entropy).mean()
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()
    alpha_opt.zero_grad()
    (log_alpha * (entropy.detach() - 0.5)).mean().backward()
    alpha_opt.step()
    alpha = 0.9 * alpha + 0.1 * float(log_alpha.detach())
""",
}
