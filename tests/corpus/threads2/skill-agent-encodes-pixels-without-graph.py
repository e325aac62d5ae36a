# /// case
# title = "Encoder of an exploration agent is called inside no_grad although it has an optimizer"
# category = "graph-break"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["step-without-gradient"]
# severity = "warning"
# names = ["encoder", "aug_and_encode", "no_grad"]
# symptom = "the convolution never moves although encoder_opt steps"
# symptom_check = "torch.equal(start, agent.encoder.convnet[0].weight)"
# cause = "update() encodes both frames under no_grad"
# fix = "encode with the graph in update_skill()"
# evidence = [
#     { url = "https://github.com/rll-research/cic/issues/5", title = "No gradient through the cnn encoder" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class PixelEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.convnet = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.repr_dim = 8 * 5 * 5

    def forward(self, obs):
        return self.convnet(obs / 255.0 - 0.5)


class SkillAgent:
    def __init__(self, skill_dim=4, lr=1e-3):
        self.skill_dim = skill_dim
        self.encoder = PixelEncoder()
        self.state_net = nn.Sequential(nn.Linear(self.encoder.repr_dim, 16), nn.ReLU(), nn.Linear(16, skill_dim))
        self.skill_net = nn.Linear(skill_dim, skill_dim)
        self.encoder_opt = torch.optim.Adam(self.encoder.parameters(), lr=lr)
        self.skill_opt = torch.optim.Adam([*self.state_net.parameters(), *self.skill_net.parameters()], lr=lr)

    def aug_and_encode(self, obs):
        shift = torch.randint(-1, 2, (1,)).item()
        return self.encoder(torch.roll(obs, shift, -1))

    def update_skill(self, code, next_code, skill):
        query = self.skill_net(skill)
        key = self.state_net(next_code) - self.state_net(code)
        scores = F.normalize(query, dim=1) @ F.normalize(key, dim=1).T
        loss = F.cross_entropy(scores / 0.5, torch.arange(len(skill)))
        self.encoder_opt.zero_grad()
        self.skill_opt.zero_grad()
        loss.backward()
        self.skill_opt.step()
        self.encoder_opt.step()  #! also
        return loss.item()

    def update(self, obs, next_obs, skill):
        with torch.no_grad():  #- here
            code = self.aug_and_encode(obs)  #- here
            next_code = self.aug_and_encode(next_obs)  #-
#+         code = self.aug_and_encode(obs)
#+         next_code = self.aug_and_encode(next_obs)
        return self.update_skill(code, next_code, skill)


torch.manual_seed(4)
agent = SkillAgent()
start = agent.encoder.convnet[0].weight.detach().clone()
for it in range(4):
    frames = torch.randint(0, 256, (2, 10, 3, 12, 12)).float()
    print(agent.update(frames[0], frames[1], torch.rand(10, agent.skill_dim)))
