# /// case
# title = "requires_grad=False is set on a computed tensor to stop gradients"
# category = "leaf-nonleaf"
# kind = "requires-grad-flag-on-nonleaf"
# severity = "error"
# names = ["anchor"]
# difficulty = "easy"
# symptom = "RuntimeError: you can only change requires_grad flags of leaf variables"
# raises = "RuntimeError"
# raises_message = "you can only change requires_grad flags of leaf variables"
# cause = "the flag of a non-leaf follows its inputs; it cannot be switched off"
# fix = "use .detach()"
# evidence = [
#     { url = "https://github.com/hpcaitech/ColossalAI/pull/711" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(2)
embed = nn.Linear(6, 4)
first, second = torch.randn(9, 6), torch.randn(9, 6)

anchor = embed(first)
moving = embed(second)
anchor.requires_grad = False  #- here
#+ anchor = anchor.detach()
gap = (moving - anchor).pow(2).sum(1).mean()
gap.backward()
print(gap.item(), embed.weight.grad.norm().item())
