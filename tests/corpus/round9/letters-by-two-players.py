# /// case
# title = "The generator of discrete sequences hands over the one-hot of an argmax"
# category = "graph-break"
# kind = "argmax-before-discriminator"
# kinds_also_ok = ["non-differentiable-argmax", "generator-gets-no-gradient", "one-hot-cuts-the-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["argmax", "one_hot", "Writer", "writer_turn"]
# symptom = "the generator has no gradients and never changes; its loss only grows"
# symptom_check = "all(p.grad is None for p in game.writer.parameters())"
# cause = "argmax and one_hot have no gradient, so the words that reach the discriminator are constants."
# fix = "a straight-through relaxation: F.gumbel_softmax(logits, hard=True)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

LETTERS, LENGTH, NOISE = 6, 5, 8


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(NOISE, 24, batch_first=True)
        self.to_letters = nn.Linear(24, LETTERS)

    def forward(self, noise):
        hidden, _ = self.rnn(noise)
        logits = self.to_letters(hidden)
        return F.one_hot(logits.argmax(dim=-1), LETTERS).float()  #- here
#+         return F.gumbel_softmax(logits, tau=1.0, hard=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(LETTERS, 16, 3, padding=1)
        self.out = nn.Linear(16 * LENGTH, 1)

    def forward(self, words):
        return self.out(F.leaky_relu(self.conv(words.transpose(1, 2)), 0.2).flatten(1)).squeeze(1)


def real_words(count):
    start = torch.randint(0, LETTERS, (count, 1))
    return F.one_hot((start + torch.arange(LENGTH)) % LETTERS, LETTERS).float()


class Game:
    def __init__(self, lr=2e-3):
        self.writer, self.reader = Writer(), Reader()
        self.writer_opt = torch.optim.Adam(self.writer.parameters(), lr=lr, betas=(0.5, 0.9))
        self.reader_opt = torch.optim.Adam(self.reader.parameters(), lr=lr, betas=(0.5, 0.9))

    def reader_turn(self, words):
        fake = self.writer(torch.randn(len(words), LENGTH, NOISE)).detach()
        loss = F.softplus(-self.reader(words)).mean() + F.softplus(self.reader(fake)).mean()
        self.reader_opt.zero_grad()
        loss.backward()
        self.reader_opt.step()
        return loss.item()

    def writer_turn(self, count):
        fake = self.writer(torch.randn(count, LENGTH, NOISE))  #! also
        loss = F.softplus(-self.reader(fake)).mean()  #! also
        self.writer_opt.zero_grad()
        loss.backward()  #! also
        self.writer_opt.step()  #! also
        return loss.item()


torch.manual_seed(21)
game = Game()
for round_ in range(12):
    losses = game.reader_turn(real_words(32)), game.writer_turn(32)
print("reader {:.3f} writer {:.3f}".format(*losses))
