# /// case
# title = "The generator's words are taken by argmax"
# category = "graph-break"
# kind = "non-differentiable-op"
# kinds_also_ok = ["graph-break-argmax", "root-without-grad"]
# severity = "error"
# names = ["argmax", "one_hot"]
# symptom = "backward raises: nothing below the loss requires a gradient"
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "argmax has no derivative"
# fix = "F.gumbel_softmax(..., hard=True)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class WordGenerator(nn.Module):
    def __init__(self, vocab=20, noise=8, length=5):
        super().__init__()
        self.vocab, self.length = vocab, length
        self.net = nn.Sequential(nn.Linear(noise, 64), nn.ReLU(), nn.Linear(64, vocab * length))

    def forward(self, z, tau=0.8):
        logits = self.net(z).view(-1, self.length, self.vocab)
        soft = F.gumbel_softmax(logits, tau=tau)  #-
        return F.one_hot(soft.argmax(-1), self.vocab).float()  #- here
#+         return F.gumbel_softmax(logits, tau=tau, hard=True)


class Critic(nn.Module):
    def __init__(self, vocab=20, length=5):
        super().__init__()
        self.score = nn.Sequential(nn.Flatten(), nn.Linear(vocab * length, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, words):
        return self.score(words)


torch.manual_seed(5)
gen, critic = WordGenerator(), Critic()
critic.requires_grad_(False)
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for step in range(4):
    fake = gen(torch.randn(32, 8))
    loss = F.softplus(-critic(fake)).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
