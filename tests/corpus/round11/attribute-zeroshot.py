# /// case
# title = "The class vectors are computed once, in front of the loop"
# category = "retention"
# kind = "graph-built-once-before-loop"
# kinds_also_ok = ["stale-graph-reused", "retain-graph-hides-stale-forward", "forward-outside-loop", "retain-graph-unneeded"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["class_vectors", "retain_graph", "attribute_encoder"]
# symptom = "the loss uses the class vectors of the untrained encoder forever, whose weights drift away without feedback"
# symptom_check = "(class_vectors - attribute_encoder(attributes[seen])).norm() > 0.3 * class_vectors.norm()"
# cause = "the forward pass of attribute_encoder is not repeated in the loop; retain_graph=True hides the error."
# fix = "compute class_vectors in every step, without retain_graph"
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(19)
torch.set_num_threads(1)

N_SEEN, N_UNSEEN, N_ATTR, DIM = 8, 4, 10, 16

attributes = (torch.rand(N_SEEN + N_UNSEEN, N_ATTR) > 0.5).float()
mixing = torch.randn(N_ATTR, 24)


def animals(labels):
    return attributes[labels] @ mixing + 0.5 * torch.randn(len(labels), 24)


class ImageEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, DIM))

    def forward(self, x):
        return self.net(x)


class AttributeEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(N_ATTR, DIM)

    def forward(self, a):
        return self.proj(a)


def accuracy(labels, candidates):
    with torch.no_grad():
        scores = image_encoder(animals(labels)) @ attribute_encoder(attributes[candidates]).T
        return (candidates[scores.argmax(1)] == labels).float().mean().item()


image_encoder = ImageEncoder()
attribute_encoder = AttributeEncoder()
params = list(image_encoder.parameters()) + list(attribute_encoder.parameters())
optimizer = torch.optim.SGD(params, lr=0.02, momentum=0.9)

seen = torch.arange(N_SEEN)
unseen = torch.arange(N_SEEN, N_SEEN + N_UNSEEN)
class_vectors = attribute_encoder(attributes[seen])  #- here

for step in range(300):  #! also
#+     class_vectors = attribute_encoder(attributes[seen])
    labels = torch.randint(0, N_SEEN, (48,))
    embedded = image_encoder(animals(labels))
    logits = embedded @ class_vectors.T  #! also
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  #- here
#+     loss.backward()
    optimizer.step()  #! also
    if step % 100 == 0:
        print(step, round(loss.item(), 4), "seen acc", accuracy(seen.repeat(20), seen))

print("seen", accuracy(seen.repeat(40), seen), "unseen", accuracy(unseen.repeat(40), unseen))
