"""Parameters that no optimizer has when it steps, in the shapes of training that people write. Written before the rules knew."""

PROGRAMS = {
    "two phases, the second with a new module and the optimizer of the first": """
import torch
from torch import nn
import torch.nn.functional as F

class Pipeline:
    def __init__(self):
        self.trunk, self.rotation = nn.Linear(6, 8), nn.Linear(8, 4)
        self.opt = torch.optim.SGD([*self.trunk.parameters(), *self.rotation.parameters()], lr=0.05)  # <- BP701
    def run(self, head, x, y):
        self.opt.zero_grad()
        loss = F.cross_entropy(head(torch.relu(self.trunk(x))), y)
        loss.backward()
        self.opt.step()

torch.manual_seed(0)
pipe = Pipeline()
for _ in range(4):
    pipe.run(pipe.rotation, torch.randn(8, 6), torch.randint(0, 4, (8,)))
classifier = nn.Linear(8, 3)
nn.init.orthogonal_(classifier.weight)
nn.init.zeros_(classifier.bias)
for _ in range(4):
    pipe.run(classifier, torch.randn(8, 6), torch.randint(0, 3, (8,)))
""",
    "an actor and a critic, whose initialisation is orthogonal, with one optimizer for the actor": """
import torch
from torch import nn
from torch.distributions import Categorical

def layer(n, m, gain=1.4):
    made = nn.Linear(n, m)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.constant_(made.bias, 0.0)
    return made

torch.manual_seed(1)
actor = nn.Sequential(layer(4, 16), nn.Tanh(), layer(16, 2, 0.01))
critic = nn.Sequential(layer(4, 16), nn.Tanh(), layer(16, 1, 1.0))
opt = torch.optim.Adam(actor.parameters(), lr=1e-3)  # <- BP701
for _ in range(5):
    obs, ret = torch.randn(12, 4), torch.randn(12)
    dist, value = Categorical(logits=actor(obs)), critic(obs).squeeze(-1)
    action = dist.sample()
    adv = (ret - value).detach()
    loss = -(dist.log_prob(action) * adv).mean() + 0.5 * (ret - value).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "heads in a dict of tasks, each initialised": """
import torch
from torch import nn

class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.body = nn.Linear(5, 8)
        self.heads = {name: nn.Linear(8, n) for name, n in tasks.items()}  # <- BP703
        for head in self.heads.values():
            nn.init.normal_(head.weight, std=0.02)
    def forward(self, x, task):
        return self.heads[task](torch.relu(self.body(x)))

torch.manual_seed(2)
net = MultiTask({"a": 1, "b": 2})
opt = torch.optim.Adam(net.parameters())
for step in range(6):
    task, width = (("a", 1), ("b", 2))[step % 2]
    opt.zero_grad()
    nn.functional.mse_loss(net(torch.randn(8, 5), task), torch.randn(8, width)).backward()
    opt.step()
""",
    "experts appended to a list in a method": """
import torch
from torch import nn

class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = []
        self.grow(3)
    def grow(self, n):
        for _ in range(n):
            expert = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
            expert.apply(self.reset)
            self.experts.append(expert)  # <- BP703
    @staticmethod
    def reset(module):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return sum(weights[:, i : i + 1] * e(x) for i, e in enumerate(self.experts))

torch.manual_seed(3)
moe = Mixture()
optimizer = torch.optim.AdamW(moe.parameters(), lr=1e-3)
for _ in range(4):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (moe(x) - x.flip(1)).pow(2).mean().backward()
    optimizer.step()
""",
    "a head replaced after the optimizer and loaded from another": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # <- BP702
source = nn.Linear(8, 3)
net[2] = nn.Linear(8, 3)
net[2].load_state_dict(source.state_dict())
for _ in range(4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
""",
    "a learner that deep-copies its model and resets the copy": """
import copy
import torch
from torch import nn

class Learner:
    def __init__(self, model, opt):
        self.model = copy.deepcopy(model)
        for m in self.model.modules():
            if hasattr(m, "reset_parameters"):
                m.reset_parameters()
        self.opt = opt
    def fit(self, x, y):
        for _ in range(4):
            self.opt.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.opt.step()

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-2)  # <- BP701
learner = Learner(net, adam)
learner.fit(torch.randn(16, 4), torch.randn(16, 1))
""",
    "the temperature of a contrastive loss, clamped in place and in no optimizer": """
import torch
from torch import nn
import torch.nn.functional as F

class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))
        nn.init.constant_(self.log_scale, 2.0)
    def forward(self, a, b):
        logits = self.log_scale.exp() * F.normalize(a, dim=1) @ F.normalize(b, dim=1).t()
        return F.cross_entropy(logits, torch.arange(len(a)))

torch.manual_seed(6)
left, right, contrast = nn.Linear(6, 4), nn.Linear(5, 4), Contrast()
params = list(left.parameters()) + list(right.parameters())  # <- BP701
opt = torch.optim.Adam(params, lr=1e-3)
for _ in range(5):
    opt.zero_grad()
    contrast(left(torch.randn(8, 6)), right(torch.randn(8, 5))).backward()
    opt.step()
""",
    "embeddings made by a closure that the training step holds": """
import torch
from torch import nn

def make_step(model, opt):
    table = nn.Embedding(10, 4)
    table.weight.data.mul_(0.1)
    def step(ids, y):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(table(ids)), y)
        loss.backward()
        opt.step()
        return loss.item()
    return step

torch.manual_seed(7)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)  # <- BP701
step = make_step(model, opt)
for _ in range(5):
    step(torch.randint(0, 10, (6,)), torch.randn(6, 1))
""",
    "decoder pretrained by another optimizer and copied before the joint phase": """
import copy
import torch
from torch import nn

torch.manual_seed(8)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
warm = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
x = torch.randn(16, 6)
for _ in range(4):
    warm.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    warm.step()
sharper = copy.deepcopy(decoder)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)  # <- BP701
for _ in range(4):
    opt.zero_grad()
    (sharper(encoder(x)) - x).abs().mean().backward()
    opt.step()
""",
    "right: a phase that is finished, a new optimizer over the new head alone": """
import torch
from torch import nn

torch.manual_seed(9)
body, first, second = nn.Linear(6, 8), nn.Linear(8, 4), nn.Linear(8, 2)
opt = torch.optim.SGD([*body.parameters(), *first.parameters()], lr=0.1)
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(first(body(torch.randn(8, 6))), torch.randint(0, 4, (8,))).backward()
    opt.step()
probe = torch.optim.SGD(second.parameters(), lr=0.1)
for _ in range(4):
    probe.zero_grad()
    nn.functional.cross_entropy(second(body(torch.randn(8, 6))), torch.randint(0, 2, (8,))).backward()
    probe.step()
    body.zero_grad()
""",
    "right: an average by deepcopy is written every step": """
import copy
import torch
from torch import nn

torch.manual_seed(10)
net = nn.Linear(4, 4)
slow = copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.randn(8, 4)
    loss = (net(x) - slow(x.flip(0))).pow(2).mean() + net(x).mean()
    opt.zero_grad()
    slow.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for s, p in zip(slow.parameters(), net.parameters()):
            s.lerp_(p, 0.1)
""",
    "right: the backbone comes from a checkpoint": """
import io
import torch
from torch import nn

torch.manual_seed(11)
held = io.BytesIO()
torch.save(nn.Linear(6, 8).state_dict(), held)
held.seek(0)
backbone, head = nn.Linear(6, 8), nn.Linear(8, 3)
backbone.load_state_dict(torch.load(held))
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(head(backbone(torch.randn(8, 6))), torch.randint(0, 3, (8,))).backward()
    opt.step()
""",
    "right: the threshold is moved by hand against its gradient": """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.cut = nn.Parameter(torch.zeros(4))
        nn.init.uniform_(self.cut)
    def forward(self, x):
        return torch.sigmoid(self.lin(x) - self.cut)

torch.manual_seed(12)
gate = Gate()
opt = torch.optim.SGD(gate.lin.parameters(), lr=0.1)
for _ in range(5):
    gate.zero_grad()
    (gate(torch.randn(8, 4)) - 0.3).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        gate.cut -= 0.5 * gate.cut.grad
""",
    "right: alternating optimizers hold everything between them": """
import torch
from torch import nn

torch.manual_seed(13)
u, v = nn.Linear(5, 4), nn.Linear(4, 5)
for m in (u, v):
    nn.init.xavier_normal_(m.weight)
opts = [torch.optim.SGD(m.parameters(), lr=0.05) for m in (u, v)]
x = torch.randn(16, 5)
for step in range(8):
    u.zero_grad()
    v.zero_grad()
    (v(u(x)) - x).pow(2).mean().backward()
    opts[step // 4].step()
""",
}
