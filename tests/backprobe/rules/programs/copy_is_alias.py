"""One thing under two names where two were meant, and tying that is meant. Written before there was a rule."""

PROGRAMS = {
    "a teacher that is the student, averaged in a method": """
import torch
from torch import nn

class MeanTeacher:
    def __init__(self, student, decay=0.9):
        self.student = student
        self.teacher = student  # <- BP750
        self.decay = decay
    @torch.no_grad()
    def update(self):
        for mine, theirs in zip(self.teacher.parameters(), self.student.parameters()):
            mine.data.mul_(self.decay).add_(theirs.data, alpha=1 - self.decay)

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
mt = MeanTeacher(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(8, 4)
    with torch.no_grad():
        soft = mt.teacher(x + 0.1 * torch.randn_like(x)).softmax(-1)
    loss = -(soft * mt.student(x).log_softmax(-1)).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    mt.update()
""",
    "a target network that is the online one": """
import torch
from torch import nn

torch.manual_seed(1)
q = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
q_target = q  # <- BP750
optim = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(12):
    s, a, r, s2 = torch.randn(8, 3), torch.randint(0, 2, (8, 1)), torch.randn(8), torch.randn(8, 3)
    with torch.no_grad():
        y = r + 0.9 * q_target(s2).max(1).values
    loss = nn.functional.mse_loss(q(s).gather(1, a).squeeze(1), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 4 == 0:
        q_target.load_state_dict(q.state_dict())
""",
    "a frozen reference made by a shallow copy inside a trainer": """
import copy
import torch
from torch import nn

class Trainer:
    def __init__(self, model):
        self.model = model
        self.anchor = copy.copy(model)  # <- BP750
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
    def step(self, x, y):
        with torch.no_grad():
            before = self.anchor(x).log_softmax(-1)
        now = self.model(x).log_softmax(-1)
        loss = nn.functional.nll_loss(now, y) + nn.functional.kl_div(now, before, log_target=True, reduction="batchmean")
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

torch.manual_seed(2)
trainer = Trainer(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)))
for _ in range(5):
    trainer.step(torch.randn(8, 5), torch.randint(0, 3, (8,)))
""",
    "a momentum encoder that is the encoder, written with lerp": """
import torch
from torch import nn
import torch.nn.functional as F

def momentum_update(query, key, m):
    with torch.no_grad():
        for pq, pk in zip(query.parameters(), key.parameters()):
            pk.lerp_(pq, 1 - m)

torch.manual_seed(3)
encoder_q = nn.Linear(6, 4)
encoder_k = encoder_q  # <- BP750
opt = torch.optim.SGD(encoder_q.parameters(), lr=0.1)
for _ in range(5):
    a, b = torch.randn(8, 6), torch.randn(8, 6)
    with torch.no_grad():
        k = F.normalize(encoder_k(b), dim=1)
    loss = F.cross_entropy(F.normalize(encoder_q(a), dim=1) @ k.t() / 0.1, torch.arange(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
    momentum_update(encoder_q, encoder_k, 0.99)
""",
    "an ensemble of one network, each member of the same batch": """
import torch
from torch import nn

class Ensemble(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.members = nn.ModuleList([nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))] * n)  # <- BP752
    def forward(self, x):
        return torch.stack([member(x) for member in self.members])

torch.manual_seed(4)
model = Ensemble(3)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    opt.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    opt.step()
""",
    "twin critics made from one": """
import torch
from torch import nn

torch.manual_seed(5)
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
critics = [critic for _ in range(2)]  # <- BP752
opt = torch.optim.Adam([p for c in critics for p in c.parameters()][:4], lr=1e-3)
for _ in range(6):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    loss = sum((c(x) - y).pow(2).mean() for c in critics)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the best weights in a dict with the epoch": """
import torch
from torch import nn

torch.manual_seed(6)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.3)
x, y, vx, vy = torch.randn(20, 4), torch.randn(20, 1), torch.randn(20, 4), torch.randn(20, 1)
best = {"loss": float("inf"), "epoch": -1, "weights": None}
for epoch in range(8):
    opt.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        loss = (model(vx) - vy).pow(2).mean().item()
    if loss < best["loss"]:
        best = {"loss": loss, "epoch": epoch, "weights": model.state_dict()}  # <- BP751
model.load_state_dict(best["weights"])
""",
    "weights saved before each task and given back after it": """
import torch
from torch import nn

def adapt(model, x, y):
    saved = model.state_dict()  # <- BP751
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        inner.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        inner.step()
    error = nn.functional.mse_loss(model(x), y).item()
    model.load_state_dict(saved)
    return error

torch.manual_seed(7)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
errors = [adapt(net, torch.randn(8, 3), torch.randn(8, 1)) for _ in range(3)]
""",
    "the initial weights by name and data, to begin again from": """
import torch
from torch import nn

torch.manual_seed(8)
net = nn.Linear(5, 2)
initial = {name: p.data for name, p in net.named_parameters()}  # <- BP751
for seed in range(2):
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    for _ in range(4):
        opt.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(8, 5)), torch.randint(0, 2, (8,))).backward()
        opt.step()
    net.load_state_dict(initial)
""",
    "a soft update that assigns the loop's variable": """
import copy
import torch
from torch import nn

torch.manual_seed(9)
net = nn.Linear(4, 1)
target = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(8, 4)
    with torch.no_grad():
        y = 0.9 * target(x)
    opt.zero_grad()
    (net(x) - y - 1).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for t, p in zip(target.parameters(), net.parameters()):
            t = 0.95 * t + 0.05 * p  # <- BP102
""",
    "weights clipped by rebinding the name in the loop": """
import torch
from torch import nn

torch.manual_seed(10)
critic = nn.Linear(4, 1)
opt = torch.optim.RMSprop(critic.parameters(), lr=1e-2)
for _ in range(5):
    opt.zero_grad()
    (critic(torch.randn(8, 4)).mean() - critic(torch.randn(8, 4) + 1).mean()).backward()
    opt.step()
    for p in critic.parameters():
        p = p.data.clamp(-0.01, 0.01)  # <- BP102
""",
    "right: tied embeddings": """
import torch
from torch import nn

class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 6)
        self.out = nn.Linear(6, 12, bias=False)
        self.out.weight = self.emb.weight
    def forward(self, ids):
        return self.out(self.emb(ids))

torch.manual_seed(11)
lm = Lm()
opt = torch.optim.SGD(lm.parameters(), lr=0.1)
for _ in range(4):
    ids = torch.randint(0, 12, (8,))
    opt.zero_grad()
    nn.functional.cross_entropy(lm(ids), ids.roll(1)).backward()
    opt.step()
""",
    "right: Siamese towers under two names": """
import torch
from torch import nn
import torch.nn.functional as F

class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(5, 4)
        self.right = self.left
    def forward(self, a, b):
        return F.cosine_similarity(self.left(a), self.right(b))

torch.manual_seed(12)
net = Siamese()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    (1 - net(torch.randn(8, 5), torch.randn(8, 5))).mean().backward()
    opt.step()
""",
    "right: one layer many times in a row": """
import torch
from torch import nn

class Universal(nn.Module):
    def __init__(self):
        super().__init__()
        block = nn.Linear(6, 6)
        self.blocks = nn.ModuleList([block] * 3)
    def forward(self, x):
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return x

torch.manual_seed(13)
net = Universal()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 6)
    opt.zero_grad()
    (net(x) - x.flip(1)).pow(2).mean().backward()
    opt.step()
""",
    "right: a target by deepcopy, loaded now and then, and the model evaluated under another name": """
import copy
import torch
from torch import nn

torch.manual_seed(14)
q = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
q_target = copy.deepcopy(q)
optim = torch.optim.Adam(q.parameters(), lr=1e-3)
for step in range(8):
    s, a, r, s2 = torch.randn(8, 3), torch.randint(0, 2, (8, 1)), torch.randn(8), torch.randn(8, 3)
    with torch.no_grad():
        y = r + 0.9 * q_target(s2).max(1).values
    loss = nn.functional.mse_loss(q(s).gather(1, a).squeeze(1), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 4 == 0:
        q_target.load_state_dict(q.state_dict())
best = q
best.eval()
with torch.no_grad():
    print(best(torch.randn(4, 3)).argmax(1))
""",
    "right: the state is copied before it is kept, or written at once": """
import copy
import io
import torch
from torch import nn

torch.manual_seed(15)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.3)
best, kept = float("inf"), None
names = model.state_dict()
for epoch in range(6):
    opt.zero_grad()
    (model(torch.randn(8, 4)) - 1).pow(2).mean().backward()
    opt.step()
    state = model.state_dict()
    held = io.BytesIO()
    torch.save(state, held)
    if epoch % 2 == 0:
        kept = copy.deepcopy(state)
model.load_state_dict(kept)
print(sorted(names))
""",
    "right: the last state goes into a second model of its own": """
import torch
from torch import nn

torch.manual_seed(16)
model, served = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(4):
    opt.zero_grad()
    (model(torch.randn(8, 4)) - 1).pow(2).mean().backward()
    opt.step()
state = model.state_dict()
served.load_state_dict(state)
model.load_state_dict(state)
""",
    "right: the loop's variable is rebound and used": """
import torch
from torch import nn

torch.manual_seed(17)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    penalty = 0
    for p in net.parameters():
        p = p.reshape(-1)
        penalty = penalty + p.pow(2).sum()
    opt.zero_grad()
    (net(torch.randn(8, 4)).pow(2).mean() + 1e-3 * penalty).backward()
    opt.step()
""",
    "right: dropout makes two passes of one module differ": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(18)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
views = [net] * 2
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x, y = torch.randn(8, 5), torch.randint(0, 3, (8,))
    a, b = (view(x) for view in views)
    kl = F.kl_div(a.log_softmax(-1), b.log_softmax(-1), log_target=True, reduction="batchmean")
    loss = F.cross_entropy(a, y) + F.cross_entropy(b, y) + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a teacher by `eval()`, which gives back the model": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,1)
teacher=net.eval() # <- BP750
opt=torch.optim.SGD(net.parameters(),lr=.1)
for _ in range(3):
    with torch.no_grad(): t=teacher(x)
    loss=(net(x)-y).pow(2).mean()+(net(x)-t).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
""",
    "a model under a second name that is meant": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,1)
model=net.to("cpu").train()
opt=torch.optim.SGD(model.parameters(),lr=.1)
for _ in range(3):
    loss=(model(x)-y).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
print(net(x).mean())
""",
    "a shallow copy of a module of which only methods are called, in a trainer": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

class Trainer:
    def __init__(self, policy):
        self.policy = policy
        self.reference = copy.copy(policy)  # <- BP750
        self.optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)

    def loss(self, x, good, bad):
        margin = self.policy.logp(x, good) - self.policy.logp(x, bad)
        with torch.no_grad():
            anchor = self.reference.logp(x, good) - self.reference.logp(x, bad)
        return -F.logsigmoid(margin - anchor).mean(), (margin > anchor).float().mean()

    def step(self, x, good, bad):
        loss, hits = self.loss(x, good, bad)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return hits.item()

trainer = Trainer(Policy())
for x in torch.randn(4, 8, 4):
    trainer.step(x, torch.zeros(8, 1, dtype=torch.long), torch.ones(8, 1, dtype=torch.long))
""",
    "a shallow copy that is put to eval in the same statement, in a function": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

def train(policy, batches):
    old = copy.copy(policy).eval()  # <- BP750
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for x in batches:
        a = torch.zeros(len(x), 1, dtype=torch.long)
        with torch.no_grad():
            before = old.logp(x, a)
        now = policy.logp(x, a)
        loss = -(now - before).exp().clamp(0.8, 1.2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

policy = Policy()
train(policy, torch.randn(4, 8, 4))
""",
    "a plain second name in a trainer, of a module of which only methods are called": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

class Distiller:
    def __init__(self, student):
        self.student = student
        self.teacher = student  # <- BP750
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def fit(self, batches):
        for x in batches:
            with torch.no_grad():
                wanted = self.teacher.logits(x).softmax(-1)
            given = self.student.logits(x).log_softmax(-1)
            loss = F.kl_div(given, wanted, reduction="batchmean")
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

Distiller(Policy()).fit(torch.randn(4, 8, 4))
""",
    "right: a deep copy of a module of which only methods are called": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

policy = Policy()
reference = copy.deepcopy(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    good, bad = torch.zeros(8, 1, dtype=torch.long), torch.ones(8, 1, dtype=torch.long)
    margin = policy.logp(x, good) - policy.logp(x, bad)
    with torch.no_grad():
        anchor = reference.logp(x, good) - reference.logp(x, bad)
    loss = -F.logsigmoid(margin - anchor).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: what was sampled before the step is scored by the policy itself": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

class Agent:
    def __init__(self):
        self.policy = Policy()
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.1)

    def learn(self, x, a):
        with torch.no_grad():
            old = self.policy.logp(x, a)
        for _ in range(3):
            now = self.policy.logp(x, a)
            loss = -torch.min((now - old).exp(), (now - old).exp().clamp(0.8, 1.2)).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

agent = Agent()
for x in torch.randn(3, 8, 4):
    agent.learn(x, torch.zeros(8, 1, dtype=torch.long))
""",
    "right: a shallow copy that only shows the same weights with another head": """
import copy
import torch
import torch.nn.functional as F
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.out = nn.Linear(8, 3)

    def logits(self, x):
        return self.out(self.body(x))

    def logp(self, x, a):
        return F.log_softmax(self.logits(x), -1).gather(1, a).squeeze(1)

policy = Policy()
view = copy.copy(policy)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    a = torch.zeros(8, 1, dtype=torch.long)
    loss = -policy.logp(x, a).mean() - view.logp(x.flip(0), a).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        print(view.logits(x).argmax(1).float().mean())
""",
}
