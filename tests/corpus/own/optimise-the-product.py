# /// case
# category = "wiring"
# kind = "optimizer-given-nonleaf"
# severity = "error"
# names = ["factor", "start"]
# ///
#-
import torch

torch.manual_seed(0)
seed = torch.randn(4, requires_grad=True)
start = seed * 0.1
opt = torch.optim.LBFGS([start], lr=0.5)  #- here
#+ opt = torch.optim.LBFGS([seed], lr=0.5)
print(opt.state_dict()["param_groups"][0]["lr"])
