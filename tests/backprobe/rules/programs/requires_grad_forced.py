"""BP106 requires-grad-forced."""

PROGRAMS = {
    "made anew of values that were tracked until then": """
import torch
net = torch.nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters())
for batch in torch.randn(4, 6, 5):
    scores = [net(row).squeeze() for row in batch]
    stacked = torch.tensor(scores, requires_grad=True)  # <- BP106
    loss = stacked.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses of a list, flagged and averaged in one expression": """
import torch
net = torch.nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters())
for batch in torch.randn(4, 6, 5):
    losses = []
    for row in batch:
        losses.append(net(row).pow(2).mean())
    loss = torch.tensor(losses, requires_grad=True).mean()  # <- BP106
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "numbers of a list, flagged: nothing was tracked": """
import torch
net = torch.nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters())
for batch in torch.randn(4, 6, 5):
    goal = torch.tensor([0.5, 1.0], requires_grad=True)
    goal.pow(2).sum().backward()
    loss = net(batch).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
