from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def features(model, names):
    found, handles = {}, []
    for name in names:
        def hook(module, inputs, output, name=name):
            found[name] = output
        handles.append(model.get_submodule(name).register_forward_hook(hook))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


torch.manual_seed(52)
encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.1), nn.Conv2d(4, 4, 3)).requires_grad_(False)
latent = torch.zeros(1, 1, 8, 8, requires_grad=True)
opt = torch.optim.Adam([latent], lr=0.1)
with torch.no_grad(), features(encoder, ["0", "2"]) as target:
    encoder(torch.rand(1, 1, 8, 8))
for it in range(5):
    with features(encoder, ["0", "2"]) as got:
        encoder(latent)
    loss = sum(nn.functional.mse_loss(got[k], target[k]) for k in target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
