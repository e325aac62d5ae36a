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
}
