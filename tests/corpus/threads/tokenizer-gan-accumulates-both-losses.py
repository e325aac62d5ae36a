# /// case
# title = "With gradient accumulation the critic also accumulates the autoencoder's adversarial loss"
# category = "other-loss"
# kind = "other-loss-in-gradient"
# kinds_also_ok = ["missing-zero-grad"]
# severity = "warning"
# names = ["critic", "backward"]
# symptom = "the critic's gradient is not that of its own loss"
# symptom_check = "not torch.allclose(got, want, atol=1e-7)"
# cause = "no clear of the critic between the generator's backward and its own"
# fix = "clear the critic's gradients before its turn"
# evidence = [
#     { url = "https://github.com/FoundationVision/OmniTokenizer/issues/15", title = "maybe bugs in loss backward?" },
#     { url = "https://github.com/coqui-ai/Trainer/pull/76", title = "Prevent dangling gradients in multiple-optimizer setup" },
# ]
# ///
import torch
from torch import nn


class VideoTokenizer:
    def __init__(self):
        self.auto = nn.Sequential(nn.Linear(10, 6), nn.Tanh(), nn.Linear(6, 10))
        self.critic = nn.Sequential(nn.Linear(10, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        self.opts = (
            torch.optim.Adam(self.auto.parameters(), lr=1e-3),
            torch.optim.Adam(self.critic.parameters(), lr=1e-3),
        )

    def autoencoder_turn(self, clips):
        for x in clips:
            recon = self.auto(x)
            loss = (recon - x).abs().mean() - 0.1 * self.critic(recon).mean()
            (loss / len(clips)).backward()  #! also
        self.opts[0].step()
        self.opts[0].zero_grad()

    def critic_turn(self, clips):
#+         self.opts[1].zero_grad()
        want = torch.zeros_like(self.critic[0].weight)
        for x in clips:
            fake = self.auto(x).detach()
            loss = torch.relu(1 - self.critic(x)).mean() + torch.relu(1 + self.critic(fake)).mean()
            want += torch.autograd.grad(loss / len(clips), self.critic[0].weight, retain_graph=True)[0]
            (loss / len(clips)).backward()  #! here
        got = self.critic[0].weight.grad.clone()
        self.opts[1].step()  #! here
        self.opts[1].zero_grad()
        return got, want


torch.manual_seed(2)
model = VideoTokenizer()
for _ in range(4):
    clips = torch.randn(3, 8, 10)
    model.autoencoder_turn(clips)
    got, want = model.critic_turn(clips)
