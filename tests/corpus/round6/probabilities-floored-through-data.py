# /// case
# title = "A softmax is floored through .data"
# category = "in-place"
# kind = "write-through-data"
# kinds_also_ok = ["wrong-gradient", "data-attribute"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["data", "clamp_"]
# symptom = "the gradients are not those of the function"
# symptom_check = "abs(slope - (up - down) / 2) > 0.1 * abs(slope)"
# cause = ".data hides the write from autograd; softmax's backward uses the floored values and the floor has derivative one"
# fix = "clamp out of place"
# ///
import torch
import torch.nn as nn


class Policy(nn.Module):
    def __init__(self, n_obs, n_act, floor=0.1):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs, 32), nn.Tanh(), nn.Linear(32, n_act))
        self.floor = floor

    def forward(self, obs):
        probs = torch.softmax(3 * self.net(obs), dim=-1)  #! also
        probs.data.clamp_(min=self.floor)  #- here
#+         probs = probs.clamp(min=self.floor)
        return probs / probs.sum(-1, keepdim=True)


def loss_of(policy, obs, act, gain):
    p = policy(obs).gather(1, act[:, None]).squeeze(1)
    return -(p.log() * gain).mean()


torch.manual_seed(44)
policy = Policy(5, 4)
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
obs = torch.randn(64, 5)
act = torch.randint(0, 4, (64,))
gain = torch.randn(64)
for it in range(5):
    opt.zero_grad()
    loss = loss_of(policy, obs, act, gain)
    loss.backward()
    opt.step()
print(loss.item())
step = 1e-3 * torch.randn(4, generator=torch.Generator().manual_seed(0)).double()
policy.double()
obs, gain = obs.double(), gain.double()
bias = policy.net[2].bias
slope = torch.autograd.grad(loss_of(policy, obs, act, gain), bias)[0] @ step
with torch.no_grad():
    bias += step
    up = loss_of(policy, obs, act, gain)
    bias -= 2 * step
    down = loss_of(policy, obs, act, gain)
