"""The 83 recorded errors of autograd, each as a program, with the rule that must find it or the reason for silence."""

RULES = {
    "second_backward": "BP301",
    "second_backward_custom_fn": "BP301",
    "second_backward_shared_subgraph(rnn hidden)": "BP302",
    "access_saved_after_free": "BP901",
    "inplace_modified_saved": "BP401",
    "inplace_modified_saved_param_step": "BP402",
    "inplace_modified_saved_anomaly": "BP401",
    "inplace_view_of_saved": "BP401",
    "leaf_inplace": "BP403",
    "leaf_inplace_setitem": "BP404",
    "leaf_view_inplace": "BP404",
    "leaf_out=": "BP408",
    "nograd_view_inplace": "BP406",
    "multi_view_inplace": "BP405",
    "unbind_view_inplace": "BP405",
    "overlapping_inplace(expand)": "BP407",
    "nonscalar_backward": "BP320",
    "nonscalar_grad": "BP320",
    "no_grad_fn": "BP322",
    "no_grad_block_loss": "BP602",
    "detached_loss": "BP601",
    "new_tensor_from_loss": "BP605",
    "argmax_loss": "BP606",
    "retain_grad_no_requires": "BP112",
    "requires_grad_false_nonleaf": "BP108",
    "requires_grad__false_nonleaf": "BP108",
    "detach__view": "BP409",
    "deepcopy_nonleaf": "BP110",
    "numpy_requires_grad": "BP610",
    "np_asarray_requires_grad": "BP610",
    "int_requires_grad": "BP105",
    "int_requires_grad_": "BP105",
    "int_requires_grad_setter": "BP105",
    "inference_saved": "BP609",
    "inference_requires_grad": "BP609",
    "inference_inplace": "BP609",
    "inference_backward": "BP602",
    "grad_dtype_mismatch_assign": "BP230",
    "grad_shape_mismatch_assign": "BP230",
    "grad_nontensor_assign": "BP230",
    "grad_outputs_shape": "BP326",
    "grad_outputs_dtype_complex": "BP326",
    "unused_in_grad": "BP323",
    "grad_input_no_rg": "BP324",
    "grad_retain_order(view as input)": "BP323",
    "nonleaf_grad_warning": "BP101",
    "create_graph_backward_warning": "BP308",
    "lr_scheduler_order": "BP710",
    "complex_loss": "BP321",
    "bool_loss": "BP606",
    "custom_fn_wrong_shape": "BP241",
    "custom_fn_wrong_count": "BP240",
    "custom_fn_once_differentiable": "BP243",
    "custom_fn_no_backward": "BP243",
    "custom_fn_instance_call": "BP243",
    "double_backward_without_create_graph": "BP325",
    "anomaly_nan": "BP502",
    "anomaly_nan_sqrt_backward": "BP501",
    "inplace_relu_saved_conflict": "BP401",
    "dropout_inplace_ok?": "BP401",
    "full_backward_hook_inplace": "BP410",
    "clip_grad_nonfinite": "BP901",
    "gradscaler_double_unscale": "BP732",
    "optimizer_nonleaf": "BP704",
    "optimizer_empty": "BP705",
    "hook_on_no_grad": "BP112",
    "post_acc_hook_nonleaf": "BP112",
    "hook_wrong_return": "BP251",
    "set_data_incompatible": "BP105",
    "bce_range": "BP805",
    "mse_broadcast_warning": "BP808",
    "swap/freeze: .data on param keeps? (no error)": "BP411",
}
"""Case -> the one rule whose finding it gives, errors and warnings before notes."""

SILENT = {
    "pickle_nonleaf": "a non-leaf is pickled with its values and without its history, as torch says it is",
    "float_requires_grad_warning": "a number for display: nothing that is differentiated reads it",
    "backward_inside_no_grad": "a backward call does not look at the grad mode: the gradients are right",
    "checkpoint_use_reentrant_warning": "a notice about a variant of checkpoint: nothing is wrong with the gradients",
    "checkpoint_reentrant_no_input_grad": "the block has no parameters: there is nothing to train",
    "checkpoint_recompute_mismatch": "torch 2.13 accepts it without a word, and the record has no second forward pass to compare",
    "module_backward_hook_nonfull_warning": "a notice about a hook that torch will take out: gradients are right",
    "torch.tensor(tensor)_warning": "nothing that is differentiated is computed from the copy",
    "dtype_mismatch_matmul": "not of autograd: the message names both dtypes, and the line is where it surfaced",
    "backward_tuple_inputs_empty": "the message says it all: an empty list was given",
    "jacobian_non_tensor": "not of autograd: a function returned a float",
}
"""Case -> why no rule speaks."""

PROGRAMS = {
    "second_backward": """\
import torch

x = torch.randn(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()
""",
    "second_backward_custom_fn": """\
import torch

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        c.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(c, g):
        return g * c.saved_tensors[0]

y = M.apply(torch.randn(3, requires_grad=True)).sum()
y.backward()
y.backward()
""",
    "second_backward_shared_subgraph(rnn hidden)": """\
import torch
from torch import nn

c = nn.RNNCell(2, 2)
h = torch.zeros(1, 2)
for _ in range(2):
    h = c(torch.ones(1, 2), h)
    h.sum().backward()
""",
    "access_saved_after_free": """\
import torch

x = torch.randn(3, requires_grad=True)
loss = x * x
loss.sum().backward()
loss.grad_fn._saved_self
""",
    "inplace_modified_saved": """\
import torch

x = torch.randn(3, requires_grad=True)
y = x.exp()
y.add_(1)
y.sum().backward()
""",
    "inplace_modified_saved_param_step": """\
import torch
from torch import nn

layer = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
y = layer(torch.ones(1, 2)).sum()
y.backward(retain_graph=True)
optimizer.step()
y.backward()
""",
    "inplace_modified_saved_anomaly": """\
import torch

with torch.autograd.detect_anomaly():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
""",
    "inplace_view_of_saved": """\
import torch

x = torch.randn(3, requires_grad=True)
y = x * 1
z = y * y
y[0] = 5.0
z.sum().backward()
""",
    "leaf_inplace": """\
import torch

x = torch.randn(3, requires_grad=True)
x.add_(1)
""",
    "leaf_inplace_setitem": """\
import torch

x = torch.randn(3, requires_grad=True)
x[0] = 1.0
""",
    "leaf_view_inplace": """\
import torch

x = torch.randn(3, requires_grad=True)
x.view(3).add_(1)
""",
    "leaf_out=": """\
import torch

x = torch.randn(3, requires_grad=True)
torch.add(torch.ones(3), 1, out=x)
""",
    "nograd_view_inplace": """\
import torch

x = torch.randn(3, requires_grad=True) * 1
with torch.no_grad():
    v = x.view(3)
v.add_(1)
""",
    "multi_view_inplace": """\
import torch

a, b = (torch.randn(4, requires_grad=True) * 1).split(2)
a.add_(1)
""",
    "unbind_view_inplace": """\
import torch

a, b = (torch.randn(2, requires_grad=True) * 1).unbind()
a.add_(1)
""",
    "overlapping_inplace(expand)": """\
import torch

torch.ones(1).expand(3).add_(1)
""",
    "nonscalar_backward": """\
import torch

(torch.randn(3, requires_grad=True) * 2).backward()
""",
    "nonscalar_grad": """\
import torch

x = torch.randn(3, requires_grad=True)
torch.autograd.grad(x * 2, x)
""",
    "no_grad_fn": """\
import torch

torch.ones(3).sum().backward()
""",
    "no_grad_block_loss": """\
import torch

x = torch.randn(3, requires_grad=True)
with torch.no_grad():
    loss = (x * 2).sum()
loss.backward()
""",
    "detached_loss": """\
import torch

x = torch.randn(3, requires_grad=True)
loss = (x * 2).sum().detach()
loss.backward()
""",
    "new_tensor_from_loss": """\
import torch

x = torch.randn(3, requires_grad=True)
torch.tensor((x * 2).sum()).backward()
""",
    "argmax_loss": """\
import torch

scores = torch.randn(3, requires_grad=True)
best = scores.argmax().float()
best.backward()
""",
    "retain_grad_no_requires": """\
import torch

torch.ones(3).retain_grad()
""",
    "requires_grad_false_nonleaf": """\
import torch

y = torch.randn(3, requires_grad=True) * 2
y.requires_grad = False
""",
    "requires_grad__false_nonleaf": """\
import torch

y = torch.randn(3, requires_grad=True) * 2
y.requires_grad_(False)
""",
    "detach__view": """\
import torch

y = (torch.randn(3, requires_grad=True) * 2).view(3)
y.detach_()
""",
    "deepcopy_nonleaf": """\
import copy
import torch

copy.deepcopy(torch.randn(3, requires_grad=True) * 2)
""",
    "pickle_nonleaf": """\
import pickle
import torch

pickle.dumps(torch.randn(3, requires_grad=True) * 2)
""",
    "numpy_requires_grad": """\
import torch

torch.randn(3, requires_grad=True).numpy()
""",
    "np_asarray_requires_grad": """\
import numpy as np
import torch

np.asarray(torch.randn(3, requires_grad=True))
""",
    "float_requires_grad_warning": """\
import torch

float(torch.randn(1, requires_grad=True) * 2)
""",
    "int_requires_grad": """\
import torch

torch.tensor([1, 2], requires_grad=True)
""",
    "int_requires_grad_": """\
import torch

torch.tensor([1, 2]).requires_grad_()
""",
    "int_requires_grad_setter": """\
import torch

torch.tensor([1, 2]).requires_grad = True
""",
    "inference_saved": """\
import torch

with torch.inference_mode():
    i = torch.ones(3)
(torch.randn(3, requires_grad=True) * i).sum()
""",
    "inference_requires_grad": """\
import torch

with torch.inference_mode():
    i = torch.ones(3)
i.requires_grad_()
""",
    "inference_inplace": """\
import torch

with torch.inference_mode():
    i = torch.ones(3)
i.add_(1)
""",
    "inference_backward": """\
import torch

x = torch.randn(3, requires_grad=True)
with torch.inference_mode():
    loss = (x * 2).sum()
    loss.backward()
""",
    "grad_dtype_mismatch_assign": """\
import torch

x = torch.randn(3, requires_grad=True)
x.grad = torch.ones(3, dtype=torch.double)
""",
    "grad_shape_mismatch_assign": """\
import torch

x = torch.randn(3, requires_grad=True)
x.grad = torch.ones(2)
""",
    "grad_nontensor_assign": """\
import torch

x = torch.randn(3, requires_grad=True)
x.grad = 1.0
""",
    "grad_outputs_shape": """\
import torch

x = torch.randn(3, requires_grad=True)
(x * 2).backward(torch.ones(2))
""",
    "grad_outputs_dtype_complex": """\
import torch

x = torch.randn(3, requires_grad=True)
(x * 2).backward(torch.ones(3, dtype=torch.cfloat))
""",
    "unused_in_grad": """\
import torch

x = torch.randn(3, requires_grad=True)
z = torch.randn(3, requires_grad=True)
torch.autograd.grad((x * 2).sum(), [x, z])
""",
    "grad_input_no_rg": """\
import torch

x = torch.randn(3, requires_grad=True)
torch.autograd.grad((x * 2).sum(), torch.ones(3))
""",
    "grad_retain_order(view as input)": """\
import torch

x = torch.randn(3, requires_grad=True)
y = x * 2
torch.autograd.grad(y.sum(), x[0])
""",
    "nonleaf_grad_warning": """\
import torch

y = torch.randn(3, requires_grad=True) * 2
y.sum().backward()
y.grad
""",
    "create_graph_backward_warning": """\
import torch

(torch.randn(3, requires_grad=True) ** 2).sum().backward(create_graph=True)
""",
    "lr_scheduler_order": """\
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for x in torch.ones(3, 4, 2):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    schedule.step()
    optimizer.step()
""",
    "complex_loss": """\
import torch

torch.randn(3, dtype=torch.cfloat, requires_grad=True).sum().backward()
""",
    "bool_loss": """\
import torch

x = torch.randn(1, requires_grad=True)
(x > 0).sum().backward()
""",
    "custom_fn_wrong_shape": """\
import torch

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x * 1

    @staticmethod
    def backward(c, g):
        return g[:1].expand(2).clone()

M.apply(torch.randn(3, requires_grad=True)).sum().backward()
""",
    "custom_fn_wrong_count": """\
import torch

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x, y):
        return x * y

    @staticmethod
    def backward(c, g):
        return g

M.apply(torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)).sum().backward()
""",
    "custom_fn_once_differentiable": """\
import torch

from torch.autograd.function import once_differentiable

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x * 1

    @staticmethod
    @once_differentiable
    def backward(c, g):
        return g * 1

x = torch.randn(3, requires_grad=True)
(g,) = torch.autograd.grad((M.apply(x) ** 2).sum(), x, create_graph=True)
g.sum().backward()
""",
    "custom_fn_no_backward": """\
import torch

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x * 1

M.apply(torch.randn(3, requires_grad=True)).sum().backward()
""",
    "custom_fn_instance_call": """\
import torch

class M(torch.autograd.Function):
    @staticmethod
    def forward(c, x):
        return x * 1

M()(torch.randn(3, requires_grad=True))
""",
    "double_backward_without_create_graph": """\
import torch

x = torch.randn(3, requires_grad=True)
(g,) = torch.autograd.grad((x**2).sum(), x)
torch.autograd.grad(g.sum(), x)
""",
    "anomaly_nan": """\
import torch

with torch.autograd.detect_anomaly():
    x = torch.zeros(1, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
""",
    "anomaly_nan_sqrt_backward": """\
import torch

with torch.autograd.detect_anomaly():
    x = torch.tensor([-1.0], requires_grad=True)
    x.sqrt().sum().backward()
""",
    "backward_inside_no_grad": """\
import torch

x = torch.randn(3, requires_grad=True)
loss = (x * 2).sum()
with torch.no_grad():
    loss.backward()
""",
    "inplace_relu_saved_conflict": """\
import torch
import torch.nn.functional as F

x = torch.randn(3, requires_grad=True)
y = torch.sigmoid(x)
F.relu(y, inplace=True)
y.sum().backward()
""",
    "dropout_inplace_ok?": """\
import torch
import torch.nn.functional as F

x = torch.randn(3, requires_grad=True)
y = torch.tanh(x)
F.dropout(y, 0.5, inplace=True)
y.sum().backward()
""",
    "checkpoint_use_reentrant_warning": """\
import torch
from torch.utils.checkpoint import checkpoint

checkpoint(lambda a: a * 2, torch.randn(3, requires_grad=True))
""",
    "checkpoint_reentrant_no_input_grad": """\
import torch
from torch.utils.checkpoint import checkpoint

checkpoint(lambda a: a * 2, torch.ones(3), use_reentrant=True)
""",
    "checkpoint_recompute_mismatch": """\
import torch
from torch.utils.checkpoint import checkpoint

n = [0]

def f(a):
    n[0] += 1
    return (a * 2).sin() if n[0] == 1 else (a * 2).sin().exp() * a.cos()

checkpoint(f, torch.randn(3, requires_grad=True), use_reentrant=False).sum().backward()
""",
    "module_backward_hook_nonfull_warning": """\
import torch
from torch import nn

layer = nn.Linear(2, 2)
layer.register_backward_hook(lambda *a: None)
layer(torch.ones(1, 2)).sum().backward()
""",
    "full_backward_hook_inplace": """\
import torch
from torch import nn

layer = nn.Linear(2, 2)
layer.register_full_backward_hook(lambda *a: None)
y = layer(torch.randn(1, 2, requires_grad=True))
y.add_(1)
""",
    "clip_grad_nonfinite": """\
import torch
from torch import nn

p = nn.Parameter(torch.ones(1))
p.grad = torch.tensor([float("nan")])
nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
""",
    "gradscaler_double_unscale": """\
import torch
from torch import nn

p = nn.Parameter(torch.ones(1))
optimizer = torch.optim.SGD([p], 0.1)
s = torch.amp.GradScaler("cpu")
s.scale((p * 2).sum()).backward()
s.unscale_(optimizer)
s.unscale_(optimizer)
""",
    "optimizer_nonleaf": """\
import torch

torch.optim.SGD([torch.randn(3, requires_grad=True) * 2], 0.1)
""",
    "optimizer_empty": """\
import torch

torch.optim.SGD([], 0.1)
""",
    "torch.tensor(tensor)_warning": """\
import torch

torch.tensor(torch.randn(3, requires_grad=True))
""",
    "hook_on_no_grad": """\
import torch

torch.ones(3).register_hook(lambda g: g)
""",
    "post_acc_hook_nonleaf": """\
import torch

(torch.randn(3, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda g: g)
""",
    "hook_wrong_return": """\
import torch

x = torch.randn(3, requires_grad=True)
x.register_hook(lambda g: torch.ones(2))
(x * 2).sum().backward()
""",
    "set_data_incompatible": """\
import torch

x = torch.randn(3, requires_grad=True)
x.data = torch.ones(3, dtype=torch.int)
""",
    "dtype_mismatch_matmul": """\
import torch

torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.double)
""",
    "backward_tuple_inputs_empty": """\
import torch

torch.randn(3, requires_grad=True).sum().backward(inputs=[])
""",
    "jacobian_non_tensor": """\
import torch

torch.autograd.functional.jacobian(lambda x: 1.0, torch.randn(3, requires_grad=True))
""",
    "bce_range": """\
import torch
import torch.nn.functional as F

F.binary_cross_entropy(torch.randn(3, requires_grad=True) * 5, torch.ones(3))
""",
    "mse_broadcast_warning": """\
import torch
import torch.nn.functional as F
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(3, 4, 2):
    price = net(x)
    loss = F.mse_loss(price, x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "swap/freeze: .data on param keeps? (no error)": """\
import torch

x = torch.randn(3, requires_grad=True)
y = x.exp()
y.data.add_(1)
y.sum().backward()
""",
}
