"""BP612 evaluating-in-train-mode."""

_HEAD = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def train():
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a function evaluates at the end": _HEAD
    + """
@torch.no_grad()
def test(data):
    out = net(data)  # <- BP612
    return out.argmax(1).float().mean().item()

for _ in range(3):
    train()
print(test(torch.randn(20, 6)))
""",
    "a model that is never trained": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
with torch.no_grad():
    print(net(torch.randn(8, 6)).mean())
""",
    "layers without a mode": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
with torch.no_grad():
    print(net(torch.randn(8, 6)).mean())
""",
    "a graph network's accuracy with dropout on": SHAPES
    + """
class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(5, 8), nn.Linear(8, 3), nn.Dropout(0.5)

    def forward(self, adj, x):
        return adj @ self.b(self.drop(torch.relu(adj @ self.a(x))))

adj, x, y = torch.rand(12, 12), torch.randn(12, 5), torch.randint(0, 3, (12,))
train, val = torch.arange(12) < 6, torch.arange(12) >= 6
gcn = GCN()
opt = torch.optim.Adam(gcn.parameters(), lr=1e-2)
for epoch in range(4):
    opt.zero_grad()
    F.cross_entropy(gcn(adj, x)[train], y[train]).backward()
    opt.step()
    guess = gcn(adj, x).argmax(1)  # <- BP612
    print(epoch, (guess[val] == y[val]).float().mean().item())
""",
    "a trainer validates a language model, perplexity of dropped-out logits": SHAPES
    + """
import math

class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.drop, self.out = nn.Embedding(20, 8), nn.Dropout(0.2), nn.Linear(8, 20)
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, t):
        return self.out(self.drop(self.rnn(self.emb(t))[0]))

class Trainer:
    def __init__(self):
        self.lm = LM()
        self.opt = torch.optim.Adam(self.lm.parameters())

    def loss(self, tokens):
        return F.cross_entropy(self.lm(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())  # <- BP612

    def fit(self, tokens):
        self.opt.zero_grad()
        logits = self.lm(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        self.opt.step()

    def perplexity(self, tokens):
        return math.exp(self.loss(tokens).item())

t = Trainer()
for _ in range(4):
    for _ in range(2):
        t.fit(torch.randint(0, 20, (4, 7)))
    print(t.perplexity(torch.randint(0, 20, (4, 7))))
""",
    "test loss of a VAE with batch norm, result is a tuple": SHAPES
    + """
enc = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
dec = nn.Linear(2, 6)

class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = enc, dec

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        return self.dec(mu + torch.randn_like(mu) * (logvar / 2).exp()), mu, logvar

def criterion(out, x, mu, logvar):
    return F.mse_loss(out, x) + 0.1 * (mu.pow(2) + logvar.exp() - logvar - 1).mean()

vae = VAE()
opt = torch.optim.Adam(vae.parameters())
train, test = torch.randn(32, 6).split(8), torch.randn(16, 6).split(8)
for epoch in range(3):
    for x in train:
        out, mu, logvar = vae(x)
        loss = criterion(out, x, mu, logvar)
        opt.zero_grad()
        loss.backward()
        opt.step()
    total = 0.0
    for x in test:
        out, mu, logvar = vae(x)  # <- BP612
        total += criterion(out, x, mu, logvar).item()
    print(total)
""",
    "a loaded teacher keeps its dropout": SHAPES
    + """
import io

def make(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.4), nn.Linear(width, 3))

file = io.BytesIO()
torch.save(make(32).state_dict(), file)
file.seek(0)
teacher, student = make(32), make(8)
teacher.load_state_dict(torch.load(file))
teacher.requires_grad_(False)
opt = torch.optim.Adam(student.parameters())
for _ in range(6):
    x = torch.randn(16, 8)
    goal = teacher(x).softmax(1)  # <- BP612
    loss = F.cross_entropy(student(x), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "Monte Carlo dropout with gradients on": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters())
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(16, 6)).pow(2).mean().backward()
    opt.step()
x = torch.randn(8, 6)
samples = torch.stack([net(x).detach() for _ in range(10)])
print(samples.mean(0).mean().item(), samples.std(0).mean().item())
""",
    "uncertainty decides what to label, each round": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters())
pool = torch.randn(20, 6)
for _ in range(3):
    for _ in range(2):
        opt.zero_grad()
        F.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,))).backward()
        opt.step()
    votes = 0
    for _ in range(6):
        votes = votes + net(pool).softmax(1).detach()
    pick = votes.max(1).values.argmin().item()
    print(pick)
""",
    "running statistics are renewed with gradients on": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    opt.step()
for m in net:
    if isinstance(m, nn.BatchNorm1d):
        m.reset_running_stats()
for _ in range(6):
    net(torch.randn(32, 6))
net.eval()
with torch.no_grad():
    print(net(torch.randn(8, 6)).argmax(1))
""",
    "a mean teacher whose noise is wanted": SHAPES
    + """
import copy
student = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(student.parameters())
for _ in range(5):
    x = torch.randn(16, 6)
    with torch.no_grad():
        goal = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    loss = (student(x).softmax(1) - goal).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(0.99).add_(s, alpha=0.01)
""",
    "pseudo-labels made by the model that is trained, in training mode": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters())
for _ in range(5):
    weak, strong = torch.randn(16, 6), torch.randn(16, 6)
    conf, label = net(weak).detach().softmax(1).max(1)
    loss = (F.cross_entropy(net(strong), label, reduction="none") * (conf > 0.2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the accuracy is that of the logits that are trained on": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters())
right = 0
for _ in range(5):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    out = net(x)
    right += (out.argmax(1) == y).sum().item()
    opt.zero_grad()
    F.cross_entropy(out, y).backward()
    opt.step()
print(right)
""",
    "some losses are too bad to be walked": SHAPES
    + """
net = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters())
for step in range(8):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(net(x), y)
    if step % 3 == 2 or not torch.isfinite(loss):
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a generator's pictures of fixed noise": SHAPES
    + """
G = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
fixed, pictures = torch.randn(6, 4), []
for _ in range(5):
    fake = G(torch.randn(8, 4))
    od.zero_grad()
    (F.softplus(-D(torch.randn(8, 2))) + F.softplus(D(fake.detach()))).mean().backward()
    od.step()
    og.zero_grad()
    F.softplus(-D(fake)).mean().backward()
    og.step()
    shown = G(fixed)
    pictures.append(shown.detach())
print(len(pictures))
""",
    "a warm-up call shows the shape, another initialises lazy layers": SHAPES
    + """
net = nn.Sequential(nn.LazyLinear(8), nn.Dropout(0.1), nn.Linear(8, 2))
net(torch.randn(2, 6))
print(net(torch.randn(2, 6)).shape)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    opt.step()
""",
    "right: a check for collapse asks for the spread of what comes out": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
x = torch.randn(48, 6)
enc, pred = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 8)
opt = torch.optim.SGD([*enc.parameters(), *pred.parameters()], 0.05)
for _ in range(3):
    a, b = enc(x + 0.1 * torch.randn_like(x)), enc(x + 0.1 * torch.randn_like(x))
    loss = -F.cosine_similarity(pred(a), b.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        z = F.normalize(enc(x), dim=-1)
        spread = z.std(dim=0).mean()
        rank = torch.linalg.matrix_rank(z)
    print(spread.item())
""",
    "right: a function of its own measures the spread": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
x = torch.randn(48, 6)
enc, pred = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 8)
opt = torch.optim.SGD([*enc.parameters(), *pred.parameters()], 0.05)

def spread(z):
    return torch.std(F.normalize(z, dim=1), dim=0).mean().item()

for _ in range(3):
    a, b = enc(x + 0.1 * torch.randn_like(x)), enc(x + 0.1 * torch.randn_like(x))
    loss = -F.cosine_similarity(pred(a), b.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        print(spread(enc(x)))
""",
    "the spread of an error is an evaluation": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
x = torch.randn(48, 6)
enc, pred = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 8)
opt = torch.optim.SGD([*enc.parameters(), *pred.parameters()], 0.05)
for _ in range(3):
    a, b = enc(x + 0.1 * torch.randn_like(x)), enc(x + 0.1 * torch.randn_like(x))
    loss = -F.cosine_similarity(pred(a), b.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        errors = pred(enc(x)).sub(x.mean())  # <- BP612
        print(errors.std(), (errors > 0).sum())
""",
    "the spread and the neighbours of what comes out": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(2)
x = torch.randn(48, 6)
enc, pred = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 8)
opt = torch.optim.SGD([*enc.parameters(), *pred.parameters()], 0.05)
for _ in range(3):
    a, b = enc(x + 0.1 * torch.randn_like(x)), enc(x + 0.1 * torch.randn_like(x))
    loss = -F.cosine_similarity(pred(a), b.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        z = enc(x)  # <- BP612
        print(z.std(0).mean().item(), (torch.cdist(z, z).topk(2, largest=False).indices[:, 1] < 24).float().mean())
""",
}
