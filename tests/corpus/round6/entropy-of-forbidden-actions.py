# /// case
# title = "Zero times minus infinity in an entropy"
# category = "numerics"
# kind = "nan-zero-times-inf"
# kinds_also_ok = ["nan-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["entropy", "masked_fill"]
# symptom = "the loss is NaN"
# symptom_check = "loss.isnan().item()"
# cause = "0 * -inf is NaN"
# fix = "a large negative number as the mask"
# ///
import torch
import torch.nn as nn


class MaskedPolicy(nn.Module):
    def __init__(self, obs=5, act=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 32), nn.ReLU(), nn.Linear(32, act))

    def forward(self, obs, legal):
        logits = self.net(obs).masked_fill(~legal, float("-inf"))  #- here
#+         logits = self.net(obs).masked_fill(~legal, -1e9)
        logp = logits.log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)  #! also
        return logp, entropy


torch.manual_seed(58)
policy = MaskedPolicy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
obs = torch.randn(32, 5)
legal = torch.rand(32, 6) < 0.6
legal[:, 0] = True
action = (torch.rand(32, 6) * legal).argmax(1)
gain = torch.randn(32)
for it in range(3):
    logp, entropy = policy(obs, legal)
    chosen = logp.gather(1, action[:, None]).squeeze(1)
    loss = -(chosen * gain).mean() - 0.01 * entropy.mean()  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), chosen.mean().item())
