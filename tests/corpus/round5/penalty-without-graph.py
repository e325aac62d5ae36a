# /// case
# title = "The gradient penalty is a constant"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["gradients", "gradient_penalty"]
# symptom = "the penalty does not train the critic"
# symptom_check = "not gp.requires_grad"
# cause = "autograd.grad without create_graph=True"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/caogang/wgan-gp/issues/4", title = 'Why "no required computing gradients"?' },
#     { url = "https://github.com/pytorch/pytorch/issues/1483", title = "How to calculate high order gradient of nn.Module with Non-linear Activations?" },
# ]
# ///
import torch
from torch import autograd, nn, optim

LAMBDA, DIM, BATCH_SIZE, CRITIC_ITERS = 0.1, 48, 32, 3
torch.manual_seed(1)


def mlp(inp, out):
    return nn.Sequential(nn.Linear(inp, DIM), nn.ReLU(), nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, out))


def swissroll():
    while True:
        t = torch.rand(BATCH_SIZE, 1) * 9 + 1
        yield torch.cat([t * t.cos(), t * t.sin()], 1) / 7.5


def calc_gradient_penalty(netD, real_data, fake_data):
    alpha = torch.rand(BATCH_SIZE, 1).expand(real_data.size())
    interpolates = (alpha * real_data + (1 - alpha) * fake_data).requires_grad_(True)
    disc_interpolates = netD(interpolates)
    gradients = autograd.grad(outputs=disc_interpolates, inputs=interpolates,
                              grad_outputs=torch.ones_like(disc_interpolates),
                              retain_graph=True, only_inputs=True)[0]  #- here
#+                               create_graph=True, only_inputs=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * LAMBDA


netG, netD = mlp(2, 2), mlp(2, 1)
optimizerD = optim.Adam(netD.parameters(), lr=1e-4, betas=(0.5, 0.9))
optimizerG = optim.Adam(netG.parameters(), lr=1e-4, betas=(0.5, 0.9))
data = swissroll()
for iteration in range(5):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(CRITIC_ITERS):
        real = next(data)
        fake = netG(torch.randn(BATCH_SIZE, 2)).detach()
        netD.zero_grad()
        gp = calc_gradient_penalty(netD, real, fake)
        D_cost = netD(fake).mean() - netD(real).mean() + gp  #! also
        D_cost.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G_cost = -netD(netG(torch.randn(BATCH_SIZE, 2))).mean()
    G_cost.backward()
    optimizerG.step()
    print(iteration, D_cost.item(), G_cost.item())
