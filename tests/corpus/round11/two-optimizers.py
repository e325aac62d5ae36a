# /// case
# title = "A step between two backward passes over the same graph"
# category = "in-place"
# kind = "step-between-backwards"
# kinds_also_ok = ["parameters-modified-before-backward", "inplace-modification", "optimizer-step-before-second-backward"]
# severity = "error"
# names = ["opt_ae", "step", "loss_clf", "enc"]
# symptom = "the second backward pass raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "opt_ae.step() changes the encoder's weights in place, which loss_clf.backward() still needs."
# fix = "both backward passes first, then both steps"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d_in=20, d_code=5):
        super().__init__()
        self.l1 = nn.Linear(d_in, 32)
        self.l2 = nn.Linear(32, d_code)

    def forward(self, x):
        return self.l2(torch.relu(self.l1(x)))  #! also


class Decoder(nn.Module):
    def __init__(self, d_code=5, d_out=20):
        super().__init__()
        self.l1 = nn.Linear(d_code, 32)
        self.l2 = nn.Linear(32, d_out)

    def forward(self, z):
        return self.l2(torch.relu(self.l1(z)))


def clusters(n, k=4, d=20):
    generator = torch.Generator().manual_seed(99)
    centers = 2 * torch.randn(k, d, generator=generator)
    label = torch.randint(0, k, (n,))
    return centers[label] + torch.randn(n, d), label


def build():
    enc, dec, clf = Encoder(), Decoder(), nn.Linear(5, 4)
    opt_ae = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=2e-3)
    opt_clf = torch.optim.Adam(clf.parameters(), lr=5e-3)
    return enc, dec, clf, opt_ae, opt_clf


def train_step(x, y, enc, dec, clf, opt_ae, opt_clf):
    z = enc(x)  #! also
    loss_rec = F.mse_loss(dec(z), x)
    loss_clf = F.cross_entropy(clf(z), y)

    opt_ae.zero_grad()
    opt_clf.zero_grad()
    loss_rec.backward(retain_graph=True)  #! also
#+     loss_clf.backward()
    opt_ae.step()  #! here
    loss_clf.backward()  #- here
    opt_clf.step()  #! also
    return loss_rec.item(), loss_clf.item()


torch.manual_seed(6)
torch.set_num_threads(1)
parts = build()
for it in range(150):
    x, y = clusters(64)
    rec, ce = train_step(x, y, *parts)  #! also
    if it % 50 == 0:
        print("it %3d  reconstruction %.3f  classification %.3f" % (it, rec, ce))

enc, dec, clf = parts[:3]
with torch.no_grad():
    x, y = clusters(500)
    print("accuracy", (clf(enc(x)).argmax(1) == y).float().mean().item())
