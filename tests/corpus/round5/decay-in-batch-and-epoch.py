# /// case
# title = "The schedule is advanced by the batch loop and the epoch loop"
# category = "optimizer"
# kind = "scheduler-stepped-twice"
# kinds_also_ok = ["scheduler-step-frequency"]
# severity = "warning"
# names = ["scheduler", "step"]
# symptom = "the schedule is ahead of the steps by one per epoch"
# symptom_check = "scheduler.last_epoch != steps"
# cause = "scheduler.step() in train_xe and in the batch loop"
# fix = "once per step"
# evidence = [
#     { url = "https://github.com/aimagelab/meshed-memory-transformer/issues/71", title = "Call scheduler.step() per epoch AND per batch?" },
# ]
# ///
import torch
from torch import nn
from torch.optim import Adam
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(16)
d_model, warmup, vocab = 16, 6, 25


def lambda_lr(s):
    s += 1
    return d_model ** -0.5 * min(s ** -0.5, s * warmup ** -1.5)


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual, self.word = nn.Linear(10, d_model), nn.Embedding(vocab, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.out = nn.Linear(d_model, vocab)

    def forward(self, regions, words):
        h0 = self.visual(regions).mean(1)[None]
        return self.out(self.decoder(self.word(words), h0)[0]).log_softmax(-1)


def train_xe(model, dataloader, optim):
    global steps
    model.train()
    scheduler.step()  #- here
    running_loss = 0.0
    for detections, captions in dataloader:
        out = model(detections, captions[:, :-1])
        loss = nn.functional.nll_loss(out.flatten(0, 1), captions[:, 1:].flatten())
        optim.zero_grad()
        loss.backward()
        optim.step()
        steps += 1
        running_loss += loss.item()
        scheduler.step()  #! also
    return running_loss / len(dataloader)


model = Captioner()
optim = Adam(model.parameters(), lr=1, betas=(0.9, 0.98))
scheduler = LambdaLR(optim, lambda_lr)
dataloader = [(torch.randn(6, 4, 10), torch.randint(0, vocab, (6, 8))) for _ in range(4)]
steps = 0
for e in range(3):
    print(e, train_xe(model, dataloader, optim), scheduler.get_last_lr())
