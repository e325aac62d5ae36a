# /// case
# title = '"loss.requires_grad = True" silences the error; backward reaches no parameter'
# category = "requires-grad"
# kind = "requires-grad-forced-on-loss"
# severity = "warning"
# names = ["loss", "net"]
# difficulty = "medium"
# symptom = "silent: every parameter keeps grad None, the loss never moves"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = "predictions were rebuilt outside autograd; turning on the flag makes the loss itself a leaf"
# fix = "compute the loss from the tracked output"
# evidence = [
#     { url = "https://github.com/ronghuaiyang/arcface-pytorch/issues/56" },
#     { url = "https://github.com/speechbrain/speechbrain/issues/735" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(21)
net = nn.Sequential(nn.Linear(5, 9), nn.ReLU(), nn.Linear(9, 1))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
inputs = torch.randn(64, 5)
answers = inputs.sum(1, keepdim=True)

for i in range(8):
    adam.zero_grad()
    outputs = net(inputs)
    outputs = torch.tensor(outputs.tolist())  #- here
    loss = nn.functional.l1_loss(outputs, answers)
    loss.requires_grad = True  #- here
    loss.backward()
    adam.step()
    if i % 4 == 0:
        print(i, loss.item())
