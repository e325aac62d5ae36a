# /// case
# title = "Coordinates are sliced off after the network has seen the full matrix"
# category = "higher-order"
# kind = "grad-wrt-unused-input"
# severity = "error"
# names = ["x", "t", "X", "u"]
# difficulty = "medium"
# symptom = "RuntimeError: One of the differentiated Tensors appears to not have been used in the graph"
# raises = "RuntimeError"
# raises_message = "appears to not have been used in the graph"
# cause = "u is a function of the matrix X; the columns x and t are new tensors that u does not depend on"
# fix = "build the network input from the columns"
# evidence = [{ url = "https://github.com/pnnl/neuromancer/issues/154" }, { url = "https://github.com/fabiodimarco/torch-levenberg-marquardt/issues/7" }]
# ///
"""PINN for the advection equation u_t + c u_x = 0."""
import math
import torch
import torch.nn as nn

torch.manual_seed(0)
C = 0.8

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)


def diff(u, v):
    return torch.autograd.grad(u, v, torch.ones_like(u), create_graph=True)[0]  #! also


def residual(X):
    x, t = X[:, :1], X[:, 1:]  #! here
    u = net(X)  #- here
#+     u = net(torch.cat([x, t], dim=1))
    return diff(u, t) + C * diff(u, x)  #! also


for it in range(40):
    X = torch.rand(128, 2).requires_grad_(True)
    x0 = torch.rand(64, 1)
    start = net(torch.cat([x0, torch.zeros_like(x0)], dim=1)) - torch.sin(2 * math.pi * x0)
    loss = residual(X).pow(2).mean() + start.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
