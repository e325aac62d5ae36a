# /// case
# title = "The gradient of a probe before training goes into the first step"
# category = "accumulation"
# kind = "stale-gradient"
# kinds_also_ok = ["missing-zero-grad"]
# severity = "warning"
# names = ["sanity_check", "backward", "zero_grad"]
# symptom = "the first step uses the probe's gradient as well"
# symptom_check = "not torch.allclose(first, own, atol=1e-6)"
# cause = "training clears after a step only, and the probe left gradients"
# fix = "clear before training"
# evidence = [
#     { url = "https://github.com/karpathy/llm.c/pull/548", title = "Fix zero grads bug" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class GPTish(nn.Module):
    def __init__(self, vocab=32, n_embd=16, block=12):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block, n_embd)
        self.h = nn.TransformerEncoderLayer(n_embd, 2, 32, dropout=0.0, batch_first=True)
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        t = idx.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        x = self.h(self.wte(idx) + self.wpe(torch.arange(t)), src_mask=mask)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def sanity_check(model, x, y):
    """Loss and gradient norm at the start, to compare with the C implementation."""
    _, loss = model(x, y)
    loss.backward()  #! also
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    print(f"before training: loss {loss.item():.4f} grad norm {norm.item():.4f}")
#+     model.zero_grad(set_to_none=True)


torch.manual_seed(1337)
model = GPTish()
data = torch.randint(0, 32, (400,))
batches = [(data[i:i + 48].view(4, 12), data[i + 1:i + 49].view(4, 12)) for i in range(0, 336, 48)]
sanity_check(model, *batches[-1])  #! here
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
first = None
for step, (x, y) in enumerate(batches[:-1]):
    logits, loss = model(x, y)
    if step == 0:
        own = torch.autograd.grad(loss, model.wte.weight, retain_graph=True)[0]
    loss.backward()
    if first is None:
        first = model.wte.weight.grad.clone()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)  #! also
    print(step, loss.item())
