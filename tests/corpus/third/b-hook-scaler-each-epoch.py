# /// case
# title = "Gradient-scaling hook is registered again every epoch"
# category = "hooks"
# kind = "hook-registered-repeatedly"
# severity = "warning"
# names = ["register_hook", "scale_backbone", "backbone"]
# difficulty = "hard"
# symptom = "The backbone's effective learning rate shrinks by ten every epoch; silent."
# symptom_check = "norms[-1] < 1e-4 * norms[0]"
# cause = "scale_backbone() is called at each epoch start and adds another hook each time; after k epochs the gradient is multiplied by 0.1^k."
# fix = "Register the hooks once before the loop."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/65194" }, { url = "https://github.com/dotnet/TorchSharp/issues/1483" }]
# ///
"""Fine-tuning with a ten times smaller gradient in the backbone."""
import torch
from torch import nn


class AudioTagger(nn.Module):
    def __init__(self, tags=4):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv1d(1, 8, 7, stride=2), nn.GELU(), nn.Conv1d(8, 16, 5, stride=2), nn.GELU())
        self.head = nn.Linear(16, tags)

    def forward(self, wav):
        return self.head(self.backbone(wav).mean(-1))


def scale_backbone(model, factor):
    for p in model.backbone.parameters():
        p.register_hook(lambda g: g * factor)  #! here


def clips(n, gen):
    tag = torch.randint(0, 4, (n,), generator=gen)
    t = torch.linspace(0, 1, 96)
    wav = (0.2 + tag[:, None]) * torch.sin(2 * torch.pi * (3 + 3 * tag[:, None]) * t + torch.rand(n, 1, generator=gen))
    return (wav + 0.1 * torch.randn(n, 96, generator=gen)).unsqueeze(1), tag


torch.manual_seed(0)
gen = torch.Generator().manual_seed(7)
model = AudioTagger()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
#+ scale_backbone(model, 0.1)
norms = []
for epoch in range(6):
    scale_backbone(model, 0.1)  #- here
    for _ in range(8):
        wav, tag = clips(32, gen)
        loss = nn.functional.cross_entropy(model(wav), tag)
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()
    norms.append(model.backbone[0].weight.grad.norm().item())
print("loss", loss.item(), "backbone gradient per epoch", norms)
