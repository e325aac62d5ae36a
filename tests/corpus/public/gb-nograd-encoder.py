# /// case
# title = "The encoder runs under torch.no_grad() although its parameters are in the optimizer"
# category = "graph-break"
# kind = "graph-break-no-grad"
# severity = "warning"
# names = ["self.img", "z"]
# difficulty = "easy"
# symptom = "silent: encoder parameters keep grad None"
# symptom_check = "all(p.grad is None for p in agent.img.parameters())"
# cause = "nothing computed under no_grad() is recorded"
# fix = "run it outside no_grad()"
# evidence = [
#     { url = "https://github.com/rll-research/cic/issues/5" },
#     { url = "https://github.com/coqui-ai/TTS/issues/2348" },
# ]
# ///
import torch
from torch import nn, Tensor


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.img = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.pi = nn.Linear(4 * 3 * 3, 2)

    def forward(self, obs: Tensor) -> Tensor:
        with torch.no_grad():  #- here
            z = self.img(obs)  #- also
#+         z = self.img(obs)
        return self.pi(z)


torch.manual_seed(6)
agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=1e-3)
for it in range(6):
    obs = torch.rand(8, 1, 8, 8)
    act = (obs.mean((1, 2, 3)) > 0.5).long()
    opt.zero_grad()
    loss = nn.functional.cross_entropy(agent(obs), act)
    loss.backward()
    opt.step()
print("loss", loss.item())
