# /// case
# title = "Gradient reversal is a module with a method named backward"
# category = "function"
# kind = "custom-backward-never-called"
# kinds_also_ok = ["custom-function-wrong-gradient"]
# severity = "warning"
# names = ["GRL", "backward", "Module"]
# symptom = "the encoder learns to tell speakers apart instead of hiding them"
# symptom_check = "min(cosine) > 0.99"
# cause = "autograd never calls a module's backward method"
# fix = "torch.autograd.Function"
# evidence = [
#     { url = "https://github.com/hash2430/pitchtron/issues/3", title = "Does gradient reversal layer work?" },
# ]
# ///
import torch
import torch.nn as nn


class GRL(nn.Module):  #- here
    def __init__(self, lambda_):  #-
        super().__init__()  #-
        self.lambda_ = lambda_  #-
#+ class GRL(torch.autograd.Function):
#+     @staticmethod
#+     def forward(ctx, x, lambda_):
#+         ctx.lambda_ = lambda_
#+         return x.view_as(x)

    def forward(self, x):  #-
        return x  #-
#-
    def backward(self, grad_output):  #- here
        return -self.lambda_ * grad_output  #-
#+     @staticmethod
#+     def backward(ctx, grad_output):
#+         return -ctx.lambda_ * grad_output, None


class SpeakerAdversary(nn.Module):
    def __init__(self, dim, n_speakers, lambda_=0.1):
        super().__init__()
        self.reverse = GRL(lambda_)  #-
#+         self.lambda_ = lambda_
        self.classifier = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, n_speakers))

    def forward(self, encoded):
        return self.classifier(self.reverse(encoded))  #- also
#+         return self.classifier(GRL.apply(encoded, self.lambda_))


torch.manual_seed(110)
encoder, decoder = nn.GRU(6, 12, batch_first=True), nn.Linear(12, 6)
adversary = SpeakerAdversary(12, 4)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *adversary.parameters()], lr=1e-3)
cosine = []
for step in range(4):
    mel, speaker = torch.randn(8, 9, 6), torch.randint(0, 4, (8,))
    encoded, _ = encoder(mel)
    pooled = encoded.mean(1)
    speaker_loss = nn.functional.cross_entropy(adversary(pooled), speaker)
    plain = nn.functional.cross_entropy(adversary.classifier(pooled), speaker)
    got, straight = (torch.autograd.grad(l, pooled, retain_graph=True)[0] for l in (speaker_loss, plain))
    cosine.append(nn.functional.cosine_similarity(got.flatten(), straight.flatten(), dim=0).item())
    loss = nn.functional.l1_loss(decoder(encoded), mel) + speaker_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(cosine)
