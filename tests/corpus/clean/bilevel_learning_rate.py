import torch

torch.manual_seed(0)
x, y = torch.randn(40, 3), torch.randn(40)
log_rate = torch.tensor(-3.0, requires_grad=True)
outer = torch.optim.Adam([log_rate], lr=0.1)
for trial in range(4):
    w = torch.zeros(3, requires_grad=True)
    for _ in range(4):
        inner = (x[:30] @ w - y[:30]).pow(2).mean()
        (g,) = torch.autograd.grad(inner, w, create_graph=True)
        w = w - log_rate.exp() * g
    held_out = (x[30:] @ w - y[30:]).pow(2).mean()
    outer.zero_grad()
    held_out.backward()
    outer.step()
    print(trial, held_out.item(), log_rate.item())
