"""BP305 graph-retained-in-container."""

PROGRAMS = {
    "inside a function, and never walked": """
import torch

def main():
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    outputs = {}
    for step, x in enumerate(torch.ones(4, 5, 3)):
        output = net(x)
        opt.zero_grad()
        output.pow(2).mean().backward()
        opt.step()
        outputs[step] = output  # <- BP305
    print(len(outputs))

main()
""",
    "a buffer that is emptied": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
recent = []
for x in torch.ones(6, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    recent.append(loss)
    if len(recent) > 4:
        recent.pop(0)
print(len(recent))
""",
    "two turns are no pattern": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for x in torch.ones(2, 5, 3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss)
print(len(history))
""",
    "one and the same tensor is taken in at each step": """
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
anchor = net(torch.ones(2, 3)).tanh()
kept = []
for x in torch.randn(5, 4, 3):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
    kept.append(anchor)
print(len(kept))
""",
}
