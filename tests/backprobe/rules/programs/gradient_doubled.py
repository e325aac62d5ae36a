"""BP327 gradient-doubled."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "the summed loss of an unrolled controller, walked at each time": SHAPES
    + """
controller = nn.Linear(3, 1)
opt = torch.optim.SGD(controller.parameters(), lr=1e-3)
for episode in range(3):
    opt.zero_grad()
    cost = torch.zeros(())
    for t in range(4):
        state = torch.randn(6, 3)
        cost = cost + (state.sum(1, keepdim=True) + controller(state)).pow(2).mean()
        cost.backward(retain_graph=True)  # <- BP327
    opt.step()
""",
    "a list of losses is summed and walked inside the loop": SHAPES
    + """
heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
trunk = nn.Sequential(nn.Linear(5, 4), nn.Tanh())
opt = torch.optim.Adam([*trunk.parameters(), *heads.parameters()])
for _ in range(3):
    x, ys = torch.randn(8, 5), torch.randn(3, 8, 1)
    h = trunk(x)
    opt.zero_grad()
    losses = []
    for head, y in zip(heads, ys):
        losses.append(F.mse_loss(head(h), y))
        sum(losses).backward(retain_graph=True)  # <- BP327
    opt.step()
""",
    "a router's balance alone and in the sum": SHAPES
    + """
router, experts = nn.Linear(6, 3), nn.ModuleList(nn.Linear(6, 2) for _ in range(3))
opt = torch.optim.Adam([*router.parameters(), *experts.parameters()])
for _ in range(4):
    x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
    gate = router(x).softmax(1)
    out = sum(gate[:, k:k + 1] * e(x) for k, e in enumerate(experts))
    balance = 3 * gate.mean(0).pow(2).sum()
    task = F.cross_entropy(out, y)
    opt.zero_grad()
    balance.backward(retain_graph=True)  # <- BP327
    total = task + 0.1 * balance
    total.backward()
    opt.step()
""",
    "KL in the ELBO and beside it": SHAPES
    + """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def loss(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (logvar / 2).exp()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - logvar - 1).sum(1).mean()
        recon = F.mse_loss(self.dec(z), x)
        elbo = recon + kl
        return elbo, kl

vae = VAE()
opt = torch.optim.Adam(vae.parameters())
for _ in range(4):
    elbo, kl = vae.loss(torch.randn(8, 6))
    loss = elbo + kl  # <- BP327
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two losses on one trunk, walked one after another": SHAPES
    + """
trunk, a, b = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
for _ in range(4):
    h = torch.tanh(trunk(torch.randn(8, 4)))
    one, two = a(h).pow(2).mean(), (b(h) - 1).pow(2).mean()
    opt.zero_grad()
    one.backward(retain_graph=True)
    two.backward()
    opt.step()
""",
    "norms of two losses are read between, then the sum": SHAPES
    + """
trunk, a, b = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
for _ in range(4):
    h = torch.tanh(trunk(torch.randn(8, 4)))
    one, two = a(h).pow(2).mean(), (b(h) - 1).pow(2).mean()
    opt.zero_grad()
    one.backward(retain_graph=True)
    norm = trunk.weight.grad.norm().item()
    opt.zero_grad()
    (one + two / max(norm, 1e-3)).backward()
    opt.step()
""",
    "a deep supervision sum that contains two heads once": SHAPES
    + """
net, aux, out = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 2)
opt = torch.optim.SGD([*net.parameters(), *aux.parameters(), *out.parameters()], lr=0.01)
for _ in range(4):
    h = net(torch.randn(8, 4)).tanh()
    side = aux(h).pow(2).mean()
    main = (out(h) - 1).pow(2).mean()
    total = main + 0.4 * side
    total = total + 0.1 * side.sqrt()
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "backward in loop, gradient logged": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    print(net.weight.grad.norm().item())
    loss.backward()  # <- BP327
    optimizer.step()
""",
}
