# /// case
# title = "Gradients are clipped while the scaler's factor is still in them"
# category = "optimizer"
# kind = "clip-before-unscale"
# kinds_also_ok = ["unscale-missing", "clipping-scaled-gradients", "amp-clip-without-unscale"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scaler", "unscale_", "clip_grad_norm_"]
# symptom = "the clipped norm is some 65536 times too large, so that after unscaling the update is next to nothing"
# symptom_check = "min(trainer.norms) > 50"
# cause = "clip_grad_norm_ sees the gradients of the scaled loss, as scaler.unscale_ has not been called."
# fix = "call scaler.unscale_(optimizer) before clipping"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class MaskEstimator(nn.Module):
    def __init__(self, bins=33, hidden=32):
        super().__init__()
        self.norm = nn.LayerNorm(bins)
        self.rnn = nn.GRU(bins, hidden, batch_first=True, bidirectional=True)
        self.mask = nn.Linear(2 * hidden, bins)

    def forward(self, magnitude):
        hidden, _ = self.rnn(self.norm(magnitude.log1p()))
        return torch.sigmoid(self.mask(hidden))


class Enhancer:
    window = torch.hann_window(64)

    @classmethod
    def spectrum(cls, audio):
        spec = torch.stft(audio, n_fft=64, hop_length=32, window=cls.window, return_complex=True)
        return spec.abs().transpose(1, 2)


class MixedPrecisionTrainer:
    def __init__(self, model, lr=0.5, max_norm=1.0, momentum=0.9):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 16)
        self.losses, self.norms = [], []

    def loss(self, noisy, clean):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mask = self.model(noisy)
        return F.mse_loss((mask.float() * noisy).log1p(), clean.log1p())

    def step(self, noisy, clean):
        self.optimizer.zero_grad()
        loss = self.loss(noisy, clean)
        self.scaler.scale(loss).backward()  #! also
#+         self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)  #! here
        self.scaler.step(self.optimizer)  #! also
        self.scaler.update()
        self.losses.append(loss.item())
        self.norms.append(norm.item())


def utterances(count, length=1024):
    time = torch.arange(length) / 256
    f0 = 8 + 20 * torch.rand(count, 1)
    speech = torch.sin(6.283 * f0 * time) + 0.5 * torch.sin(12.566 * f0 * time)
    gate = (torch.sin(6.283 * time + 6.283 * torch.rand(count, 1)) > 0).float()
    return speech * gate, speech * gate + 0.7 * torch.randn(count, length)


torch.manual_seed(29)
clean_audio, noisy_audio = utterances(24)
clean, noisy = Enhancer.spectrum(clean_audio), Enhancer.spectrum(noisy_audio)
network = MaskEstimator()
trainer = MixedPrecisionTrainer(network)
for epoch in range(8):
    for index in torch.randperm(len(clean)).split(8):
        trainer.step(noisy[index], clean[index])
with torch.inference_mode():
    remaining = trainer.loss(noisy, clean).item()
print(f"log-spectral error {trainer.losses[0]:.4f} -> {remaining:.4f}; last norm {trainer.norms[-1]:.3g}")
