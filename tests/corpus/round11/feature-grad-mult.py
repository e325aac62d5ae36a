# /// case
# title = "The hooks that damp the encoder's gradient are registered anew in every epoch"
# category = "hook"
# kind = "hooks-registered-repeatedly"
# kinds_also_ok = ["hook-accumulates", "hook-not-removed", "gradient-scaled-repeatedly", "vanishing-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook", "damp_gradients", "train_epoch", "features"]
# symptom = "the encoder's gradient is multiplied by the factor once more in every epoch and vanishes"
# symptom_check = "len(model.features[0].weight._backward_hooks) > 1"
# cause = "damp_gradients() is called at the start of each epoch and its hooks are never removed."
# fix = "register the hooks once, before training"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F


class KeywordSpotter(nn.Module):
    def __init__(self, keywords, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, width, 10, stride=5), nn.GELU(),
            nn.Conv1d(width, width, 4, stride=2), nn.GELU(),
        )
        self.context = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=32, dropout=0.1, batch_first=True)
        self.classify = nn.Linear(width, keywords)

    def forward(self, audio):
        frames = self.features(audio[:, None]).transpose(1, 2)
        return self.classify(self.context(frames).mean(1))


def damp_gradients(module, factor):
    for parameter in module.parameters():
        parameter.register_hook(lambda grad: grad * factor)  #! also


class WarmupCosine(torch.optim.lr_scheduler.LambdaLR):
    def __init__(self, optimizer, warmup, total):
        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
        super().__init__(optimizer, factor)


def chirps(count, keywords=4, length=240):
    label = torch.randint(keywords, (count,))
    time = torch.arange(length) / length
    start = 6.0 + 5.0 * (label % 2).float()
    sweep = torch.where(label < 2, 6.0, -4.0)
    phase = 2 * math.pi * (start[:, None] * time + 0.5 * sweep[:, None] * time.square() + torch.rand(count, 1))
    return phase.sin() + 0.3 * torch.randn(count, length), label


def train_epoch(model, optimizer, schedule, data, grad_mult):
    audio, label = data
    model.train()
    damp_gradients(model.features, grad_mult)  #- here
    total, encoder_norm = 0.0, 0.0
    for index in torch.randperm(len(audio)).split(32):
        loss = F.cross_entropy(model(audio[index]), label[index])
        optimizer.zero_grad()
        loss.backward()  #! also
        encoder_norm += nn.utils.get_total_norm([p.grad for p in model.features.parameters()]).item()
        optimizer.step()
        schedule.step()
        total += loss.item() * len(index)
    return total / len(audio), encoder_norm


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    audio, label = data
    return (model(audio).argmax(1) == label).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(47)
    training, testing = chirps(192), chirps(96)
    model = KeywordSpotter(keywords=4)
    epochs, grad_mult = 8, 0.3
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    schedule = WarmupCosine(optimizer, warmup=6, total=6 * epochs)
#+     damp_gradients(model.features, grad_mult)
    for epoch in range(epochs):
        loss, encoder_norm = train_epoch(model, optimizer, schedule, training, grad_mult)  #! also
        print(f"{epoch} loss {loss:.4f} encoder {encoder_norm:.2e} accuracy {evaluate(model, testing):.3f}")
