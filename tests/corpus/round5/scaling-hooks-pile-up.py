# /// case
# title = "A hook is registered in each forward and never removed"
# category = "hook"
# kind = "hook-accumulation"
# kinds_also_ok = ["hook-not-removed", "backward-twice"]
# severity = "error"
# names = ["register_forward_pre_hook", "handle"]
# symptom = "hooks of earlier forwards apply their scalings too, and backward walks their freed graphs"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "handles are overwritten, only the last is removed"
# fix = "remove each hook after its forward"
# evidence = [
#     { url = "https://github.com/huggingface/peft/pull/2761", title = "FIX X-LoRA forward hook issue during generate" },
#     { url = "https://github.com/EleutherAI/bergson/pull/55", title = "clear hook lists so that they don't grow after each step" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(46)


class XLoraLayer(nn.Module):
    """A frozen layer with several adapters that scalings mix."""

    def __init__(self, dim, adapters=3, r=2):
        super().__init__()
        self.base = nn.Linear(dim, dim).requires_grad_(False)
        self.a = nn.Parameter(torch.randn(adapters, r, dim) * 0.2)
        self.b = nn.Parameter(torch.randn(adapters, dim, r) * 0.2)

    def forward(self, x, scalings):
        delta = torch.einsum("bi,nri,nor->bno", x, self.a, self.b)
        return self.base(x) + (delta * scalings[..., None]).sum(1)


class XLoraModel(nn.Module):
    def __init__(self, dim=12, adapters=3):
        super().__init__()
        self.layer = XLoraLayer(dim, adapters)
        self.classifier = nn.Linear(dim, adapters)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        scalings = self.classifier(x).softmax(-1)

        def scale_pre_hook(module, args, kwargs):
            inner, given = args
            return (inner, given * scalings), kwargs

        handle = self.layer.register_forward_pre_hook(scale_pre_hook, with_kwargs=True)  #! here
        return self.head(torch.tanh(self.layer(x, torch.ones_like(scalings))))  #- also
#+         try:
#+             return self.head(torch.tanh(self.layer(x, torch.ones_like(scalings))))
#+         finally:
#+             handle.remove()


model = XLoraModel()
layer = model.layer
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3)
for step in range(6):
    x = torch.randn(16, 12)
    loss = F.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item(), len(layer._forward_pre_hooks))
