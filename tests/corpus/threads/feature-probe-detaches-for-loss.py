# /// case
# title = "Hook that records features detaches them, and the loss is made of them"
# category = "partial-cut"
# kind = "graph-break-detach"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["feats", "record"]
# symptom = "the feature-matching term is untracked"
# symptom_check = "matching.grad_fn is None"
# cause = "the hook stores output.detach()"
# fix = "store the output itself"
# evidence = [
#     { url = "https://github.com/myscience/open-genie/issues/6", title = "Question about the PerceptualLoss and RecordingProbe" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(9)


class Probe:
    def __init__(self, layer):
        self.feats = None
        self.handle = layer.register_forward_hook(self.record)

    def record(self, module, args, output):
        self.feats = output.detach()  #- here
#+         self.feats = output


gen = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
disc = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).requires_grad_(False)
probe = Probe(disc[0])
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for i in range(10):
    real = torch.randn(32, 6) + 2
    disc(real)
    real_feats = probe.feats.mean(0).detach()
    fake = gen(torch.randn(32, 4))
    adversarial = nn.functional.softplus(-disc(fake)).mean()
    matching = (probe.feats.mean(0) - real_feats).square().sum()  #! also
    g_loss = adversarial + 10 * matching  #! also
    opt.zero_grad()
    g_loss.backward()
    opt.step()
print(g_loss.item())
