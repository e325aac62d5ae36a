# /// case
# category = "gradient"
# kind = "other-loss-in-gradient"
# severity = "warning"
# names = ["critic", "d_opt", "zero_grad"]
# ///
#-
import torch
from torch import nn


class Adversarial:
    def __init__(self):
        self.generator = nn.Linear(2, 2)
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        self.g_opt = torch.optim.SGD(self.generator.parameters(), lr=0.05)
        self.d_opt = torch.optim.SGD(self.critic.parameters(), lr=0.05)

    def generator_turn(self, noise):
        self.g_opt.zero_grad()
        loss = nn.functional.softplus(-self.critic(self.generator(noise))).mean()
        loss.backward()  #! also
        self.g_opt.step()

    def critic_turn(self, real, noise):
        fake = self.generator(noise).detach()
        loss = (nn.functional.softplus(-self.critic(real)) + nn.functional.softplus(self.critic(fake))).mean()
#+         self.d_opt.zero_grad()
        loss.backward()  #! here
        self.d_opt.step()  #! also
        self.d_opt.zero_grad()


torch.manual_seed(0)
game = Adversarial()
for _ in range(5):
    game.generator_turn(torch.randn(16, 2))
    game.critic_turn(torch.randn(16, 2) + 2, torch.randn(16, 2))
