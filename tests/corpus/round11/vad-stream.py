# /// case
# title = "A probe puts the model into eval mode in the middle of the epoch and leaves it there"
# category = "mode"
# kind = "eval-mode-left-on"
# kinds_also_ok = ["train-mode-not-restored", "eval-during-training", "dropout-and-batchnorm-disabled"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["model", "eval", "train", "LatencyProbe"]
# symptom = "from the first probe on the network trains without dropout and with frozen batch statistics"
# symptom_check = "not trainer.model.training"
# cause = "the probe calls model.eval(), and model.train() is only called once at the start of fit()."
# fix = "model.train() at the end of the probe"
# ///
import time
from collections import defaultdict

import torch
from torch import nn
import torch.nn.functional as F


class VoiceActivity(nn.Module):
    def __init__(self, mels=20, width=24):
        super().__init__()
        self.frontend = nn.Sequential(
            nn.Conv1d(mels, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.3),
            nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.3),
        )
        self.score = nn.Conv1d(width, 1, 1)

    def forward(self, mels):
        return self.score(self.frontend(mels)).squeeze(1)


class Callback:
    def on_fit_start(self, trainer): ...
    def on_batch_end(self, trainer, batch, loss): ...
    def on_epoch_end(self, trainer, epoch): ...


class RunningMean(Callback):
    def __init__(self):
        self.sums, self.counts, self.table = defaultdict(float), defaultdict(int), []

    def on_batch_end(self, trainer, batch, loss):
        self.sums["loss"] += loss
        self.counts["loss"] += 1

    def on_epoch_end(self, trainer, epoch):
        self.table.append(self.sums.pop("loss") / self.counts.pop("loss"))
        print(f"epoch {epoch} loss {self.table[-1]:.4f}")


class LatencyProbe(Callback):
    """Runs a stream chunk by chunk now and then, as the device will."""

    def __init__(self, stream, every=6, chunk=32):
        self.stream, self.every, self.chunk = stream, every, chunk
        self.timings, self.decisions = [], []

    def on_batch_end(self, trainer, batch, loss):
        if batch % self.every:
            return
        trainer.model.eval()  #! here
        with torch.no_grad():
            began = time.perf_counter()
            pieces = [trainer.model(part) for part in self.stream.split(self.chunk, dim=-1)]
            self.timings.append((time.perf_counter() - began) / len(pieces))
        self.decisions.append((torch.cat(pieces, -1) > 0).float().mean().item())
#+         trainer.model.train()


class Trainer:
    def __init__(self, model, callbacks, lr=3e-3):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def emit(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def fit(self, mels, speech, epochs, batch_size=16):
        self.model.train()  #! also
        self.emit("on_fit_start")
        for epoch in range(epochs):
            for batch, index in enumerate(torch.randperm(len(mels)).split(batch_size)):
                loss = F.binary_cross_entropy_with_logits(self.model(mels[index]), speech[index])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.emit("on_batch_end", batch, loss.item())  #! also
            self.emit("on_epoch_end", epoch)


def synthesize(count, frames=96, mels=20):
    segments = (torch.rand(count, frames // 16) > 0.5).float().repeat_interleave(16, dim=1)
    formants = torch.rand(count, mels, 1)
    return torch.randn(count, mels, frames) + 1.2 * formants * segments[:, None], segments


torch.manual_seed(61)
mels, speech = synthesize(160)
stream, _ = synthesize(1, frames=320)
probe, running = LatencyProbe(stream), RunningMean()
trainer = Trainer(VoiceActivity(), [running, probe])
trainer.fit(mels, speech, epochs=5)
print(f"{len(probe.timings)} probes, speech share {probe.decisions[-1]:.3f}, loss {running.table[-1]:.4f}")
