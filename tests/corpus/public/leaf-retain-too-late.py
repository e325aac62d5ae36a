# /// case
# title = "retain_grad() is called after backward(), so the intermediate's grad stays None"
# category = "leaf-nonleaf"
# kind = "retain-grad-after-backward"
# severity = "warning"
# names = ["hidden"]
# difficulty = "easy"
# symptom = "silent: hidden.grad is None"
# symptom_check = "hidden_grad is None"
# cause = "retain_grad() installs a hook for later backward passes; it cannot recover one that has run"
# fix = "call retain_grad() before backward()"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/2677" },
#     { url = "https://github.com/nerfstudio-project/gsplat/issues/390" },
# ]
# ///
import torch

torch.manual_seed(1)
x = torch.randn(8, 3)
w_in = torch.randn(3, 5, requires_grad=True)
w_out = torch.randn(5, 1, requires_grad=True)

hidden = torch.tanh(x @ w_in)
#+ hidden.retain_grad()
score = (hidden @ w_out).mean()
score.backward()
hidden.retain_grad()  #- here
hidden_grad = hidden.grad  #! also
print("hidden grad:", hidden_grad)
