# /// case
# title = "requires_grad is set as an attribute of the module, which freezes nothing"
# category = "flags"
# kind = "module-requires-grad-attribute"
# kinds_also_ok = ["freeze-without-effect", "frozen-module-still-trains", "requires-grad-on-module"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encoder", "requires_grad", "requires_grad_"]
# symptom = "the pretrained encoder drifts away while only the head should learn"
# symptom_check = "any(not torch.equal(value, model.encoder.state_dict()[key]) for key, value in checkpoint.items())"
# cause = "A module has no such property; the assignment makes an unused attribute and its parameters keep requires_grad=True."
# fix = "requires_grad_(False)"
# ///
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
        optimizer.step()  #! also
    return encoder.state_dict()


def finetune(model, mel, labels, epochs=15):
    model.encoder.requires_grad = False  #- here
#+     model.encoder.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  #! also
    for epoch in range(epochs):
        for rows in torch.randperm(len(mel)).split(16):
            loss = nn.functional.cross_entropy(model(mel[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  #! also
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
