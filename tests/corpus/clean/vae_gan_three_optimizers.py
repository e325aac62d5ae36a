import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def mlp(*sizes):
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.LeakyReLU(0.2))]
    return nn.Sequential(*layers[:-1])


encoder, decoder, critic = mlp(12, 16, 8), mlp(4, 16, 12), mlp(12, 16, 1)
opt_e, opt_d, opt_c = (torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.9)) for m in (encoder, decoder, critic))


def hidden(x):
    return critic[1](critic[0](x))


for _ in range(4):
    real = torch.randn(16, 12).cumsum(1)
    mu, logvar = encoder(real).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    fake, dreamt = decoder(z), decoder(torch.randn_like(z))

    opt_c.zero_grad()
    scores = critic(torch.cat([real, fake.detach(), dreamt.detach()])).squeeze(1)
    wanted = torch.cat([torch.ones(16), torch.zeros(32)])
    F.binary_cross_entropy_with_logits(scores, wanted).backward()
    opt_c.step()

    for p in critic.parameters():
        p.requires_grad_(False)
    similarity = F.mse_loss(hidden(fake), hidden(real).detach())
    prior = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    opt_e.zero_grad()
    (similarity + 0.01 * prior).backward(retain_graph=True, inputs=list(encoder.parameters()))
    opt_d.zero_grad()
    fool = F.softplus(-critic(fake)).mean() + F.softplus(-critic(dreamt)).mean()
    (0.5 * similarity + fool).backward(inputs=list(decoder.parameters()))
    opt_e.step()
    opt_d.step()
    for p in critic.parameters():
        p.requires_grad_(True)
