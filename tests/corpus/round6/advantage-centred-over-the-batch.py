# /// case
# title = "The dueling head subtracts the mean of the batch"
# category = "shape"
# kind = "reduced-over-all-dimensions"
# kinds_also_ok = ["batch-dimension-mixed"]
# severity = "warning"
# names = ["advantage", "mean"]
# symptom = "a state's values depend on the other states of the batch"
# symptom_check = "not torch.allclose(online(s)[0], online(s[:1])[0], atol=1e-5)"
# cause = "mean() runs over all dimensions"
# fix = "mean(1, keepdim=True)"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/issues/140", title = "DuelingDQN.ipynb中可能存在的两个BUG~" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(71)


class Dueling(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(obs, 48), nn.ReLU())
        self.advantage = nn.Linear(48, act)
        self.value = nn.Linear(48, 1)

    def forward(self, s):
        h = self.feature(s)
        value, advantage = self.value(h), self.advantage(h)
        return value + advantage - advantage.mean()  #- here
#+         return value + advantage - advantage.mean(1, keepdim=True)


online, target = Dueling(3, 5), Dueling(3, 5)
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
for update in range(25):
    s, s2 = torch.randn(32, 3), torch.randn(32, 3)
    a, r = torch.randint(0, 5, (32, 1)), torch.randn(32, 1)
    with torch.no_grad():
        best = online(s2).argmax(1, keepdim=True)
        y = r + 0.9 * target(s2).gather(1, best)
    loss = nn.functional.mse_loss(online(s).gather(1, a), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(loss.item())
