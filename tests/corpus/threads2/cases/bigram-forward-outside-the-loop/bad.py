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

# forward pass
logits = xenc @ W
counts = logits.exp()
prob = counts / counts.sum(1, keepdim=True)
loss = -prob[torch.arange(num), ys].log().mean() + 0.01 * (W**2).mean()

# gradient descent
for k in range(10):
    W.grad = None
    loss.backward()
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
