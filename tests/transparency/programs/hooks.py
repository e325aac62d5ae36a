"""Every kind of hook a user may set, those that raise among them."""
import torch
from torch import nn

order = []


def note(name, result=None):
    def hook(*args):
        order.append(name)
        return result

    return hook


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 1)

    def forward(self, x, *, twice=False):
        h = self.a(x)
        h.register_hook(lambda g: order.append("h") or g * 2)
        return self.b(h) * (2 if twice else 1)


torch.manual_seed(0)
net = Net()
net.register_forward_pre_hook(note("pre"))
net.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs, "twice": True}), with_kwargs=True)
net.register_forward_hook(note("forward"))
net.a.register_forward_hook(lambda m, i, o: o + 1)
net.b.register_full_backward_hook(note("full backward"))
net.b.register_full_backward_pre_hook(note("full backward pre"))
net.a.weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
net.a.bias.register_post_accumulate_grad_hook(lambda p: order.append(("accumulated", p.grad is not None)))
handle = nn.modules.module.register_module_forward_hook(note("global forward"))
backward_handle = nn.modules.module.register_module_full_backward_hook(note("global backward"))
x = torch.ones(2, 3, requires_grad=True)
out = net(x)
out.grad_fn.register_hook(note("node post"))
out.grad_fn.register_prehook(note("node pre"))
multi = torch.autograd.graph.register_multi_grad_hook((net.a.weight, net.b.weight), lambda gs: order.append(("all", [g is not None for g in gs])))
anyone = torch.autograd.graph.register_multi_grad_hook((net.a.weight, net.b.weight), lambda g: order.append("any"), mode="any")
out.sum().backward()
print(order, [p.grad.tolist() for p in net.parameters()], x.grad.tolist())
for h in (handle, backward_handle, multi, anyone):
    h.remove()
order.clear()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
optimizer.register_step_pre_hook(note("step pre"))
optimizer.register_step_post_hook(note("step post"))
optimizer.register_state_dict_post_hook(lambda o, s: order.append("state dict"))
optimizer.step()
optimizer.state_dict()
net.register_state_dict_post_hook(note("module state"))
net.state_dict()
net.load_state_dict(net.state_dict())
print(order, torch._C._autograd._get_sequence_nr() > 0)
y = torch.ones(2, requires_grad=True)
z = y * 2
z.register_hook(lambda g: 1 / 0)
try:
    z.sum().backward()
except ZeroDivisionError as error:
    print("raised", error, y.grad)
z = y * 2
try:
    z.register_hook(lambda g: torch.ones(5))
    z.sum().backward()
except RuntimeError as error:
    print(error)
z = y * 2
h1 = z.register_hook(lambda g: g * 3)
h2 = z.register_hook(lambda g: g + 1)
h1.remove()
z.sum().backward()
print(y.grad, list(z._backward_hooks))
w = torch.ones(1, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
(w * 2).backward()
print(w.grad)


def forward_raises(module, inputs):
    raise KeyError("in a hook")


net.a.register_forward_pre_hook(forward_raises)
try:
    net(x)
except KeyError as error:
    print("key", error)
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    a = torch.ones(2, requires_grad=True)
    b = a.clone()
    c = b * b
    b.sin_()
    c.sum().backward()
    print(a.grad)
