import torch
from torch import autograd, nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x).view(-1)


netG = nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 2))
netD = Critic()
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
one = torch.tensor(1.0)
mone = one * -1


def calc_gradient_penalty(netD, real, fake, lam=0.1):
    alpha = torch.rand(real.size(0), 1).expand(real.size())
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = netD(interpolates)
    gradients = autograd.grad(out, interpolates, torch.ones(out.size()), create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * lam


for iteration in range(4):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(2):
        real = torch.randn(32, 2) * 0.1 + torch.tensor([1.0, 0.0])
        netD.zero_grad()
        D_real = netD(real).mean()
        D_real.backward(mone)
        with torch.no_grad():
            fake = netG(torch.randn(32, 2))
        D_fake = netD(fake).mean()
        D_fake.backward(one)
        gp = calc_gradient_penalty(netD, real, fake)
        gp.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G = netD(netG(torch.randn(32, 2))).mean()
    G.backward(mone)
    optimizerG.step()
    print(iteration, (D_fake - D_real + gp).item(), -G.item())
