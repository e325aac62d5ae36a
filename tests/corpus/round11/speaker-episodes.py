# /// case
# title = "The encoder is frozen by setting requires_grad on the module"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["freezing-without-effect", "encoder-not-frozen", "requires-grad-attribute-on-module"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["encoder", "requires_grad", "requires_grad_"]
# symptom = "the encoder that should be frozen is trained along"
# symptom_check = 'not torch.equal(learner.encoder[0].weight, pretrained["0.weight"])'
# cause = "assigning requires_grad to an nn.Module only sets an attribute and reaches no parameter."
# fix = "encoder.requires_grad_(False)"
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F


class SpeakerSource:
    """Speakers as directions in feature space; utterances scatter about them."""

    def __init__(self, speakers, dim, scatter, seed):
        self.rng = torch.Generator().manual_seed(seed)
        self.means = torch.randn(speakers, dim, generator=self.rng)
        self.scatter = scatter

    def utterances(self, speakers, each):
        noise = torch.randn(len(speakers), each, self.means.size(1), generator=self.rng)
        return self.means[speakers, None] + self.scatter * noise

    def episode(self, ways, shots, queries):
        chosen = torch.randperm(len(self.means), generator=self.rng)[:ways]
        data = self.utterances(chosen, shots + queries)
        return data[:, :shots], data[:, shots:]


class PrototypicalLearner(nn.Module):
    def __init__(self, encoder, width, out):
        super().__init__()
        self.encoder = encoder
        self.project = nn.Linear(width, out)
        self.log_temperature = nn.Parameter(torch.tensor(0.0))

    def freeze_encoder(self):
        self.encoder.requires_grad = False  #- here
#+         self.encoder.requires_grad_(False)
        return self

    def embed(self, x):
        return F.normalize(self.project(self.encoder(x)), dim=-1)

    def forward(self, support, query):
        prototypes = self.embed(support).mean(1)
        logits = self.embed(query).flatten(0, 1) @ prototypes.T / self.log_temperature.exp()
        labels = torch.arange(len(support)).repeat_interleave(query.size(1))
        return F.cross_entropy(logits, labels), (logits.argmax(1) == labels).float().mean().item()


def pretrain(encoder, source, width, steps):
    classifier = nn.Linear(width, len(source.means))
    optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=3e-3)
    everyone = torch.arange(len(source.means))
    for _ in range(steps):
        x = source.utterances(everyone, 4).flatten(0, 1)
        loss = F.cross_entropy(classifier(encoder(x)), everyone.repeat_interleave(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def adapt(learner, source, episodes):
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.1, momentum=0.9)  #! also
    for number in range(episodes):
        loss, accuracy = learner(*source.episode(ways=5, shots=3, queries=5))
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
        yield number, loss.item(), accuracy


torch.manual_seed(13)
encoder = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
print("pre-training loss", pretrain(encoder, SpeakerSource(24, 20, 1.0, seed=1), 32, steps=80))
pretrained = copy.deepcopy(encoder.state_dict())
learner = PrototypicalLearner(encoder, 32, 16).freeze_encoder()  #! also
for number, loss, accuracy in adapt(learner, SpeakerSource(40, 20, 1.5, seed=2), episodes=60):
    if number % 15 == 0:
        print(f"episode {number:3d} loss {loss:.4f} accuracy {accuracy:.2f}")
