# /// case
# title = "Functional training updates a dict of parameters and evaluates the module"
# category = "uncovered"
# kind = "functional-result-not-written-back"
# severity = "warning"
# names = ["params", "functional_call"]
# symptom = "the module's weights are as at the start"
# symptom_check = "torch.equal(model[0].weight, initial)"
# cause = "the new params are never copied into the module"
# fix = "load_state_dict(params)"
# evidence = [
#     { url = "https://github.com/pytorch/functorch/issues/280", title = "How to update the original model parameters after calling make_functional?" },
# ]
# ///
import torch
from torch import nn
from torch.func import functional_call, grad

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
initial = model[0].weight.detach().clone()
x = torch.randn(80, 3)
y = x.sum(1, keepdim=True).sin()


def objective(params, xb, yb):
    return nn.functional.mse_loss(functional_call(model, params, (xb,)), yb)


params = {k: v.detach() for k, v in model.named_parameters()}  #! here
for epoch in range(30):
    for xb, yb in zip(x.split(20), y.split(20)):
        grads = grad(objective)(params, xb, yb)
        params = {k: p - 0.05 * grads[k] for k, p in params.items()}  #! here
#+ model.load_state_dict(params)
model.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(model(x), y).item())  #! here
