"""BP774 schedule-of-other-optimizer."""

PROGRAMS = {
    "both schedules of a GAN for one player": """
import torch, torch.nn as nn
torch.manual_seed(0)
G_, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt = torch.optim.Adam(G_.parameters(), 2e-4)
d_opt = torch.optim.Adam(D.parameters(), 2e-4)
g_sched = torch.optim.lr_scheduler.ExponentialLR(g_opt, 0.9)
d_sched = torch.optim.lr_scheduler.ExponentialLR(g_opt, 0.9)  # <- BP774
bce = nn.BCEWithLogitsLoss()
for epoch in range(5):
    real = torch.randn(32, 8)
    fake = G_(torch.randn(32, 4))
    d_loss = bce(D(real), torch.ones(32, 1)) + bce(D(fake.detach()), torch.zeros(32, 1))
    d_opt.zero_grad(); d_loss.backward(); d_opt.step()
    g_loss = bce(D(fake), torch.ones(32, 1))
    g_opt.zero_grad(); g_loss.backward(); g_opt.step()
    g_sched.step(); d_sched.step()
""",
    "right: one for each player": """
import torch, torch.nn as nn
torch.manual_seed(0)
G_, D = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt = torch.optim.Adam(G_.parameters(), 2e-4)
d_opt = torch.optim.Adam(D.parameters(), 2e-4)
g_sched = torch.optim.lr_scheduler.ExponentialLR(g_opt, 0.9)
d_sched = torch.optim.lr_scheduler.ExponentialLR(d_opt, 0.9)
bce = nn.BCEWithLogitsLoss()
for epoch in range(5):
    real = torch.randn(32, 8)
    fake = G_(torch.randn(32, 4))
    d_loss = bce(D(real), torch.ones(32, 1)) + bce(D(fake.detach()), torch.zeros(32, 1))
    d_opt.zero_grad(); d_loss.backward(); d_opt.step()
    g_loss = bce(D(fake), torch.ones(32, 1))
    g_opt.zero_grad(); g_loss.backward(); g_opt.step()
    g_sched.step(); d_sched.step()
""",
    "the optimizer is replaced when the body is thawed": """
import torch, torch.nn as nn
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
body.requires_grad_(False)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
for epoch in range(6):
    if epoch == 2:
        body.requires_grad_(True)
        opt = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)  # <- BP774
    for _ in range(2):
        opt.zero_grad()
        head(body(torch.randn(8, 4)).relu()).pow(2).mean().backward()
        opt.step()
    schedule.step()
""",
    "right: the new optimizer has a schedule of its own": """
import torch, torch.nn as nn
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
body.requires_grad_(False)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
for epoch in range(6):
    if epoch == 2:
        body.requires_grad_(True)
        opt = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
        schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
    for _ in range(2):
        opt.zero_grad()
        head(body(torch.randn(8, 4)).relu()).pow(2).mean().backward()
        opt.step()
    schedule.step()
""",
    "right: a second training without a schedule, of the same weights": """
import torch, torch.nn as nn
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
def train(opt, schedule, epochs):
    for _ in range(epochs):
        opt.zero_grad()
        net(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
        if schedule is not None:
            schedule.step()
train(opt, schedule, 3)
train(torch.optim.SGD(net.parameters(), lr=1e-4), None, 4)
""",
    "right: what trains afterwards is another model": """
import torch, torch.nn as nn
first, second = nn.Linear(4, 1), nn.Linear(4, 1)
opt = torch.optim.Adam(first.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.8)
for epoch in range(6):
    if epoch == 2:
        opt = torch.optim.Adam(second.parameters(), lr=1e-3)
    net = first if epoch < 2 else second
    for _ in range(2):
        opt.zero_grad()
        net(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
    schedule.step()
""",
    "right: two optimizers of one model in turns": """
import torch, torch.nn as nn
net = nn.Linear(4, 1)
fast = torch.optim.Adam(net.parameters(), lr=1e-2)
slow = torch.optim.SGD(net.parameters(), lr=1e-4)
schedule = torch.optim.lr_scheduler.ExponentialLR(fast, 0.9)
for epoch in range(8):
    opt = fast if epoch % 4 < 2 else slow
    for _ in range(2):
        opt.zero_grad()
        net(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
    schedule.step()
""",
}
