# /// case
# title = "requires_grad = True set on a module unfreezes nothing"
# category = "flags"
# kind = "requires-grad-attribute-on-module"
# kinds_also_ok = ["module-requires-grad-assignment", "parameters-stay-frozen"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad", "stage"]
# symptom = "the stages stay frozen for all epochs"
# symptom_check = "not any(p.requires_grad for p in model.stages.parameters())"
# cause = "A module takes any attribute; only requires_grad_() reaches its parameters."
# fix = "stage.requires_grad_(True)"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ConvStage(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, 5, stride=2, padding=2)
        self.norm = nn.GroupNorm(4, channels_out)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x)))


class VibrationNet(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.stages = nn.ModuleList([ConvStage(1, width), ConvStage(width, width), ConvStage(width, width)])
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = x.unsqueeze(1)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(dim=-1))


class Event:
    def __init__(self):
        self.listeners = []

    def __iadd__(self, listener):
        self.listeners.append(listener)
        return self

    def fire(self, *args):
        for listener in self.listeners:
            listener(*args)


class GradualUnfreezing:
    """Starts with the head alone, then wakes one stage after another, the topmost first."""

    def __init__(self, model, every):
        self.every = every
        self.waiting = list(model.stages)
        for stage in self.waiting:
            for parameter in stage.parameters():
                parameter.requires_grad = False  #! also

    def __call__(self, epoch):
        if epoch and epoch % self.every == 0 and self.waiting:
            stage = self.waiting.pop()  #! also
            stage.requires_grad = True  #- here
#+             stage.requires_grad_(True)


class Loop:
    def __init__(self, model, lr, tune_lr=None):
        self.model = model
        self.epoch_started = Event()
        self.epoch_ended = Event()
        self.optimizer = torch.optim.AdamW([
            {"params": model.stages.parameters(), "lr": tune_lr or lr},
            {"params": model.head.parameters(), "lr": lr},
        ])

    def run(self, signals, labels, epochs, batch_size=48):
        for epoch in range(epochs):
            self.epoch_started.fire(epoch)
            losses = []
            for rows in torch.randperm(len(labels)).split(batch_size):
                loss = F.cross_entropy(self.model(signals[rows]), labels[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            self.epoch_ended.fire(epoch, sum(losses) / len(losses))


def vibrations(count, frequencies, length=64):
    label = torch.randint(0, len(frequencies), (count,))
    t = torch.arange(length) / length
    phase = 6.28 * torch.rand(count, 1)
    wave = torch.sin(6.28 * torch.tensor(frequencies)[label, None] * t + phase)
    return wave + 0.4 * torch.randn(count, length), label


torch.manual_seed(36)
model = VibrationNet(classes=3)
pretrain = Loop(model, lr=5e-3)
pretrain.run(*vibrations(384, [2.0, 5.0, 9.0]), epochs=4)

model.head = nn.Linear(16, 4)
loop = Loop(model, lr=5e-3, tune_lr=2e-3)
loop.epoch_started += GradualUnfreezing(model, every=2)
loop.epoch_ended += lambda epoch, loss: print(f"epoch {epoch} loss {loss:.4f}")
loop.run(*vibrations(384, [3.0, 11.0, 14.0, 20.0]), epochs=10)
