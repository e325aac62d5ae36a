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
        return F.gumbel_softmax(logits, tau=tau, hard=True)


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
    loss.backward()
    opt.step()
print(loss.item())
