# /// case
# title = "Initialising a spectrally normed layer through weight.data has no effect"
# category = "uncovered"
# kind = "parametrization-bypassed"
# severity = "warning"
# names = ["weight", "data"]
# symptom = "the layer's effective weight stays as it was"
# symptom_check = "torch.equal(critic[0].parametrizations.weight.original, before)"
# cause = ".weight of a parametrised layer is computed anew at each access"
# fix = "initialise before parametrising, or assign"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/48181", title = "nn.utils.spectral_norm() does not perform normalization of the weight matrix." },
#     { url = "https://github.com/pytorch/pytorch/pull/103001", title = "Add parametrization version of weight_norm" },
# ]
# ///
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(2)
critic = nn.Sequential(spectral_norm(nn.Linear(6, 16)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(16, 1)))
before = critic[0].parametrizations.weight.original.detach().clone()


def weights_init(module):
    if isinstance(module, nn.Linear):
        module.weight.data.normal_(0.0, 0.02)  #- here
#+         nn.init.normal_(module.parametrizations.weight.original, 0.0, 0.02)
        nn.init.zeros_(module.bias)


critic.apply(weights_init)  #! also
opt = torch.optim.Adam(critic.parameters(), lr=1e-12)
for _ in range(3):
    real, fake = torch.randn(8, 6) + 1, torch.randn(8, 6)
    loss = critic(fake).mean() - critic(real).mean()
    opt.zero_grad()
    loss.backward()
