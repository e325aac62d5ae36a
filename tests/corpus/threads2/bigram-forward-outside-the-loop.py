# /// case
# title = "Forward pass of a bigram model stands above the loop"
# category = "retention"
# kind = "graph-built-once"
# kinds_also_ok = ["second-backward-freed-graph"]
# severity = "error"
# names = ["loss", "logits", "prob"]
# symptom = "RuntimeError in the second pass of the loop"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the loss is computed once"
# fix = "compute the loss inside the loop"
# evidence = [
#     { url = "https://github.com/karpathy/nn-zero-to-hero/issues/31", title = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call ." },
# ]
# ///
import torch
import torch.nn.functional as F

words = ["emma", "olivia", "ava", "isabella", "sophia"]
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}

xs, ys = [], []
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        xs.append(stoi[ch1])
        ys.append(stoi[ch2])
xs, ys = torch.tensor(xs), torch.tensor(ys)
num, size = xs.nelement(), len(stoi)

g = torch.Generator().manual_seed(2147483647)
W = torch.randn((size, size), generator=g, requires_grad=True)
xenc = F.one_hot(xs, num_classes=size).float()

# forward pass  #-
logits = xenc @ W  #-
counts = logits.exp()  #-
prob = counts / counts.sum(1, keepdim=True)  #-
loss = -prob[torch.arange(num), ys].log().mean() + 0.01 * (W**2).mean()  #- here
#-
# gradient descent
for k in range(10):
#+     logits = xenc @ W
#+     counts = logits.exp()
#+     prob = counts / counts.sum(1, keepdim=True)
#+     loss = -prob[torch.arange(num), ys].log().mean() + 0.01 * (W**2).mean()
    W.grad = None
    loss.backward()  #! here
    W.data += -10 * W.grad
    print(k, loss.item())

out, ix = [], 0
while len(out) < 12:
    p = F.softmax(F.one_hot(torch.tensor([ix]), size).float() @ W, 1)
    ix = torch.multinomial(p, 1, generator=g).item()
    if ix == 0:
        break
    out.append(itos[ix])
print("".join(out))
