"""torch.func, vmap, forward mode, functional.*, double backward."""
import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, stack_module_state, vjp, vmap

torch.manual_seed(0)


def f(x):
    h = x.sin()
    if h.dim():
        h = h.sum()
    y = h * h
    return y


x = torch.randn(3)
print(grad(f)(x), grad(grad(lambda t: f(t)))(torch.tensor(1.0)), grad_and_value(f)(x))
print(jacrev(torch.sin)(x), jacfwd(torch.sin)(x), hessian(f)(x))
print(vmap(grad(f))(torch.randn(4, 3)), vmap(f, in_dims=1)(torch.randn(3, 2)))
print(jvp(f, (x,), (torch.ones(3),)), vjp(f, x)[1](torch.tensor(2.0)), linearize(f, x)[1](torch.ones(3)))
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = dict(net.named_parameters())


def loss(p, a, b):
    out = functional_call(net, p, (a,))
    error = (out - b).pow(2)
    return error.mean()


a, b = torch.randn(5, 3), torch.randn(5, 1)
per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(params, a, b)
print({k: v.sum().item() for k, v in per_sample.items()})
models = [nn.Linear(2, 2) for _ in range(3)]
p, buffers = stack_module_state(models)
print(vmap(lambda q, t: functional_call(models[0], q, (t,)), in_dims=(0, None))(p, torch.ones(2)).shape)
print(vmap(lambda t: torch.randn(2) + t, randomness="different")(torch.zeros(2, 2)).shape)
with forward_ad.dual_level():
    dual = forward_ad.make_dual(x, torch.ones(3))
    out = f(dual)
    print(forward_ad.unpack_dual(out))
F = torch.autograd.functional
print(F.jacobian(torch.exp, x), F.hessian(f, x), F.vjp(f, x), F.jvp(torch.sin, x, x), F.vhp(f, x, x), F.hvp(f, x, x))
print(F.jacobian(torch.exp, x, vectorize=True), F.jacobian(torch.exp, x, create_graph=True, strategy="reverse-mode").requires_grad)
w = torch.randn(3, requires_grad=True)
y = (w**3).sum()
(g,) = torch.autograd.grad(y, w, create_graph=True)
penalty = g.norm()
penalty.backward()
print(w.grad)
(g2,) = torch.autograd.grad((w**4).sum(), w, create_graph=True)
(g3,) = torch.autograd.grad(g2.sum(), w, create_graph=True)
(g4,) = torch.autograd.grad(g3.sum(), w)
print(g4, torch.autograd.grad(w * 2, w, torch.eye(3), is_grads_batched=True))
w.grad = None
(w**2).sum().backward(create_graph=True)
print(w.grad.requires_grad, w.grad.grad_fn.name())
w.grad.sum().backward()
print(w.grad.tolist())
w.grad = None
u = torch.randn(2, requires_grad=True)
print(torch.autograd.grad((w * 2).sum(), [w, u], allow_unused=True), torch.autograd.grad((w * 2).sum(), [w, u], materialize_grads=True))
torch.autograd.backward([w.sum(), u.sum()], [torch.tensor(2.0), None], inputs=[w])
print(w.grad, u.grad)
edge = torch.autograd.graph.get_gradient_edge(w * 3)
print(torch.autograd.grad(edge, w, torch.ones(3)))
