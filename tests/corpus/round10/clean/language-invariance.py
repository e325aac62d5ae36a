import math

import torch
from torch import nn
from torch.autograd import Function


class Opposed(Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, upstream):
        return -ctx.strength * upstream, None


class InvariantSpeechModel(nn.Module):
    def __init__(self, bins=20, width=24, words=5, languages=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(bins, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1))
        self.word = nn.Linear(width, words)
        self.language = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, languages))

    def forward(self, mel, strength):
        features = self.encoder(mel).mean(-1)
        return self.word(features), self.language(Opposed.apply(features, strength))


def make_speech(count, bins=20, frames=16):
    word, language = torch.randint(5, (count,)), torch.randint(3, (count,))
    mel = 0.5 * torch.randn(count, bins, frames)
    mel[torch.arange(count), word * 3] += 2
    mel[torch.arange(count), 15 + language] += 2
    return mel, word, language


def ramp(step, steps):
    return 2 / (1 + math.exp(-10 * step / steps)) - 1


torch.manual_seed(7)
model = InvariantSpeechModel()
encoder_opt = torch.optim.Adam(model.encoder.parameters(), lr=2e-3)
head_opt = torch.optim.Adam([*model.word.parameters(), *model.language.parameters()], lr=4e-3)
criterion = nn.CrossEntropyLoss()
steps = 100
for step in range(steps):
    mel, word, language = make_speech(32)
    word_logits, language_logits = model(mel, 0.3 * ramp(step, steps))
    word_loss, language_loss = criterion(word_logits, word), criterion(language_logits, language)
    encoder_opt.zero_grad()
    head_opt.zero_grad()
    (word_loss + language_loss).backward()
    encoder_opt.step()
    head_opt.step()
    if step % 20 == 19:
        print(step, f"word {word_loss.item():.3f} language {language_loss.item():.3f}")
