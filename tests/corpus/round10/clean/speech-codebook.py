import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    def __init__(self, codes, width, commitment=0.25):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width) / width ** 0.5)
        self.commitment = commitment

    def forward(self, frames):
        with torch.no_grad():
            nearest = torch.cdist(frames.flatten(0, 1), self.codes).argmin(-1).view(frames.shape[:-1])
        picked = self.codes[nearest]
        loss = F.mse_loss(picked, frames.detach()) + self.commitment * F.mse_loss(frames, picked.detach())
        return frames + (picked - frames).detach(), nearest, loss


class Tokenizer(nn.Module):
    def __init__(self, bins=16, width=8, codes=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(bins, 32), nn.GELU(), nn.Linear(32, width))
        self.codebook = Codebook(codes, width)
        self.decode = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, bins))

    def forward(self, mel):
        quantised, tokens, loss = self.codebook(self.encode(mel))
        return self.decode(quantised), tokens, loss


@torch.no_grad()
def revive(tokenizer, mel):
    frames = tokenizer.encode(mel).flatten(0, 1)
    tokens = tokenizer(mel)[1]
    idle = (tokens.flatten().bincount(minlength=len(tokenizer.codebook.codes)) == 0).nonzero().squeeze(-1)
    tokenizer.codebook.codes[idle] = frames[torch.randint(len(frames), (len(idle),))]
    return len(idle)


torch.manual_seed(12)
phones = torch.randn(10, 16)
mel = phones[torch.randint(10, (48, 12))] + 0.1 * torch.randn(48, 12, 16)
tokenizer = Tokenizer()
optimizer = torch.optim.Adam(tokenizer.parameters(), lr=3e-3)
for epoch in range(15):
    for rows in torch.randperm(48).split(12):
        restored, tokens, codebook_loss = tokenizer(mel[rows])
        loss = F.mse_loss(restored, mel[rows]) + codebook_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    revived = revive(tokenizer, mel)
    print(epoch, round(loss.item(), 4), revived, tokens.unique().numel())
