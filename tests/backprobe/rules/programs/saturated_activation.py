"""BP509 saturated-activation."""

RAW = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
pixels = torch.randint(0, 256, (16, 64)).float()
for _ in range({turns}):
    x = {x}
    out = net(x){mark}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "raw pixels": RAW.format(turns=4, x="pixels", mark="  # <- BP509", loss="out.pow(2).mean()"),
    "scaled pixels": RAW.format(turns=4, x="pixels / 255 - 0.5", mark="", loss="out.pow(2).mean()"),
    "twice is no pattern": RAW.format(turns=2, x="pixels", mark="", loss="out.pow(2).mean()"),
    "most elements get no gradient": RAW.format(turns=4, x="pixels / 255", mark="", loss="out[:1].pow(2).mean()"),
    "VAE encoder scaled through data": SHAPES
    + """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.stats, self.dec = nn.Linear(10, 24), nn.Linear(24, 4), nn.Linear(2, 10)

    def forward(self, x):
        mu, logvar = self.stats(torch.sigmoid(self.enc(x))).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar

vae = VAE()
vae.enc.weight.data.mul_(400)  # <- BP509
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
for _ in range(6):
    x = torch.randn(32, 10)
    out, mu, logvar = vae(x)
    loss = F.mse_loss(out, x) + 0.1 * (mu.pow(2) + logvar.exp() - logvar - 1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "PINN with a normal init of deviation 50": SHAPES
    + """
def build(width):
    layers = [nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1)]
    for layer in layers:
        if isinstance(layer, nn.Linear):
            torch.nn.init.normal_(layer.weight, std=500.0)  # <- BP509
    return nn.Sequential(*layers)

u = build(32)
opt = torch.optim.Adam(u.parameters(), lr=1e-3)
for _ in range(5):
    t = torch.rand(64, 1)
    loss = (u(t) - t.sin()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the second of two stacks under one call is open, the first is flat": SHAPES
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 16), nn.Tanh(),  # <- BP509
            nn.Linear(16, 16), nn.Tanh(),
            nn.Linear(16, 1),
        )

    def forward(self, x):
        return self.layers(x)

def batches(table, size):
    while True:
        for rows in torch.randperm(len(table)).split(size):
            yield table[rows]

net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
table = 101325 + 4000 * torch.randn(64, 4)
for _, x in zip(range(8), batches(table, 16)):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
    "right: both of two stacks are open": SHAPES
    + """
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x in torch.randn(8, 16, 4):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
""",
    "a generator's loss is the log of the probability that it is found out": SHAPES
    + """
torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.001), torch.optim.Adam(judge.parameters(), lr=0.05)

def judge_step():
    real, fake = 3 + 0.1 * torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()

for _ in range(60):
    judge_step()
    loss = F.logsigmoid(-judge(maker(torch.randn(32, 2)))).mean()  # <- BP509
    m_opt.zero_grad()
    loss.backward()
    m_opt.step()
""",
    "the same as a maximised cross entropy, in a trainer": SHAPES
    + """
torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.001), torch.optim.Adam(judge.parameters(), lr=0.05)

def judge_step():
    real, fake = 3 + 0.1 * torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()

class Trainer:
    def maker_step(self, noise):
        scores = judge(maker(noise))
        loss = -F.binary_cross_entropy_with_logits(scores, torch.zeros_like(scores))  # <- BP509
        m_opt.zero_grad()
        loss.backward()
        m_opt.step()

trainer = Trainer()
for _ in range(60):
    judge_step()
    trainer.maker_step(torch.randn(32, 2))
""",
    "the same with softplus and a frozen critic, by a helper": SHAPES
    + """
torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.001), torch.optim.Adam(judge.parameters(), lr=0.05)

def judge_step():
    real, fake = 3 + 0.1 * torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()

def fooled(scores):
    return -F.softplus(scores).mean()  # <- BP509

for _ in range(60):
    judge_step()
    judge.requires_grad_(False)
    loss = fooled(judge(maker(torch.randn(32, 2))))
    m_opt.zero_grad()
    loss.backward()
    m_opt.step()
    judge.requires_grad_(True)
""",
    "right: minus the log of the probability that it is taken for real": SHAPES
    + """
torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.001), torch.optim.Adam(judge.parameters(), lr=0.05)

def judge_step():
    real, fake = 3 + 0.1 * torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()

for _ in range(60):
    judge_step()
    loss = -F.logsigmoid(judge(maker(torch.randn(32, 2)))).mean()
    m_opt.zero_grad()
    loss.backward()
    m_opt.step()
""",
    "right: against labels of the real ones": SHAPES
    + """
torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.001), torch.optim.Adam(judge.parameters(), lr=0.05)

def judge_step():
    real, fake = 3 + 0.1 * torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()

for _ in range(60):
    judge_step()
    scores = judge(maker(torch.randn(32, 2)))
    loss = F.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
    m_opt.zero_grad()
    loss.backward()
    m_opt.step()
""",
    "right: a classifier that knows its classes": SHAPES
    + """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=5.0)
for _ in range(60):
    x = torch.randn(32, 2)
    label = (x[:, :1] > 0).float() * 2 - 1
    loss = F.softplus(-label * net(x + 4 * label)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the critic is fooled, and the loss is flat where it is best": SHAPES
    + """
maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
nn.init.constant_(judge.bias, 6.0)
m_opt, j_opt = torch.optim.SGD(maker.parameters(), lr=0.1), torch.optim.SGD(judge.parameters(), lr=1e-4)
for _ in range(12):
    real, fake = 3 + torch.randn(32, 2), maker(torch.randn(32, 2)).detach()
    loss = -(F.logsigmoid(judge(real)) + F.logsigmoid(-judge(fake))).mean()
    j_opt.zero_grad()
    loss.backward()
    j_opt.step()
    loss = -F.logsigmoid(judge(maker(torch.randn(32, 2)))).mean()
    m_opt.zero_grad()
    loss.backward()
    m_opt.step()
""",
    "right: an energy of one network, which has no critic": SHAPES
    + """
net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
nn.init.constant_(net[2].bias, -6.0)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x in torch.randn(12, 32, 2):
    score = net(x)
    loss = -F.softplus(score).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
