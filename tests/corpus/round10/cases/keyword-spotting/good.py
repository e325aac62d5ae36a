import torch
import torch.nn as nn


class FrameEncoder(nn.Module):
    def __init__(self, mels=16, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(mels, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())

    def forward(self, mel):
        return self.layers(mel)


class Spotter(nn.Module):
    def __init__(self, encoder, keywords):
        super().__init__()
        self.encoder = encoder
        self.attend = nn.Linear(32, 1, bias=False)
        self.classify = nn.Linear(32, keywords)

    def forward(self, mel):
        frames = self.encoder(mel)
        weights = self.attend(frames).softmax(1)
        return self.classify((weights * frames).sum(1))


def pretrain(mel, steps=40):
    encoder, predict = FrameEncoder(), nn.Linear(32, 16)
    optimizer = torch.optim.Adam([*encoder.parameters(), *predict.parameters()], lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.l1_loss(predict(encoder(mel[:, :-1])), mel[:, 1:]).backward()
        optimizer.step()
    return encoder.state_dict()


def finetune(model, mel, labels, epochs=15):
    model.encoder.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for rows in torch.randperm(len(mel)).split(16):
            loss = nn.functional.cross_entropy(model(mel[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield epoch, loss.item()


torch.manual_seed(17)
labels = torch.randint(0, 6, (96,))
prototypes = torch.randn(6, 16)
mel = torch.randn(96, 20, 16).cumsum(1) * 0.2 + prototypes[labels][:, None]
checkpoint = pretrain(mel)
encoder = FrameEncoder()
encoder.load_state_dict(checkpoint)
model = Spotter(encoder, 6)
for epoch, loss in finetune(model, mel, labels):
    print(epoch, round(loss, 4))
