# /// case
# title = "The quantised code goes to the decoder without the straight-through estimator"
# category = "graph-break"
# kind = "straight-through-missing"
# kinds_also_ok = ["encoder-without-reconstruction-gradient", "graph-break", "non-differentiable-quantisation", "argmin-cuts-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["quantized", "latents", "encoder", "codebook"]
# symptom = "the encoder is trained by the commitment term alone and gets no gradient of the reconstruction"
# symptom_check = "torch.autograd.grad((model(clips)[0] - clips).square().mean(), model.encoder[0].weight, allow_unused=True)[0] is None"
# cause = "the code vectors are looked up by an argmin index, and nothing passes the decoder's gradient on to the latents."
# fix = "return latents + (quantized - latents).detach()"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, codes, width, commitment=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, width)
        nn.init.uniform_(self.codebook.weight, -1 / codes, 1 / codes)
        self.commitment = commitment

    def forward(self, latents):
        latents = latents.transpose(1, 2)
        flat = latents.reshape(-1, latents.size(-1))
        table = self.codebook.weight
        distances = flat.square().sum(1, keepdim=True) - 2 * flat @ table.T + table.square().sum(1)
        indices = distances.argmin(1).view(latents.shape[:2])  #! also
        quantized = self.codebook(indices)  #! also
        codebook_loss = F.mse_loss(quantized, latents.detach())
        commitment_loss = F.mse_loss(latents, quantized.detach())
        auxiliary = codebook_loss + self.commitment * commitment_loss
#+         quantized = latents + (quantized - latents).detach()
        return quantized.transpose(1, 2), auxiliary, indices  #! here


class SpeechCodec(nn.Module):
    def __init__(self, width=16, codes=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=4, padding=4),
            nn.GELU(),
            nn.Conv1d(width, width, 5, stride=2, padding=2),
        )
        self.quantizer = VectorQuantizer(codes, width)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(width, width, 4, stride=2, padding=1),
            nn.GELU(),
            nn.ConvTranspose1d(width, 1, 8, stride=4, padding=2),
        )

    def forward(self, audio):
        quantized, auxiliary, indices = self.quantizer(self.encoder(audio))
        return self.decoder(quantized), auxiliary, indices  #! also


def voiced(count, length=256):
    time = torch.arange(length) / length
    pitch = torch.randint(3, 9, (count, 1)).float()
    harmonics = sum((torch.rand(count, 1) / k) * torch.sin(2 * torch.pi * k * pitch * time) for k in (1, 2, 3))
    envelope = torch.sigmoid(20 * (time - 0.1)) * torch.sigmoid(20 * (0.9 - time))
    return (harmonics * envelope)[:, None]


def perplexity(indices, codes):
    usage = torch.bincount(indices.flatten(), minlength=codes).float()
    usage = usage / usage.sum()
    return torch.exp(-(usage * (usage + 1e-9).log()).sum()).item()


torch.manual_seed(8)
clips = voiced(48)
model = SpeechCodec()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=90)
report = {"reconstruction": [], "perplexity": []}
for step in range(90):
    batch = clips[torch.randint(len(clips), (16,))]
    restored, auxiliary, indices = model(batch)
    reconstruction = F.mse_loss(restored, batch)
    optimizer.zero_grad(set_to_none=True)
    (reconstruction + auxiliary).backward()
    optimizer.step()
    schedule.step()
    report["reconstruction"].append(reconstruction.item())
    report["perplexity"].append(perplexity(indices, 32))
print({name: (round(v[0], 4), round(v[-1], 4)) for name, v in report.items()})
