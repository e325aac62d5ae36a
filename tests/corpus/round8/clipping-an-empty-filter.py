# /// case
# title = "Gradients are clipped over a filter object that the optimizer has already read to its end"
# category = "optimizer"
# kind = "exhausted-generator"
# kinds_also_ok = ["parameters-iterator-consumed", "clipping-without-effect"]
# severity = "warning"
# names = ["trainable", "filter", "clip_grad_norm_"]
# symptom = "gradients far above the maximum norm reach the optimizer"
# symptom_check = "max(after_clip) > 0.3"
# cause = "filter() gives an iterator that the optimizer's constructor exhausts, so that clip_grad_norm_ sees no parameter and clips nothing."
# fix = "make a list of it"
# ///
import torch
import torch.nn as nn

torch.manual_seed(77)
VOCAB, WIDTH, MAX_NORM = 40, 24, 0.25


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.embedding.weight.requires_grad_(False)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * WIDTH, 6)

    def forward(self, tokens):
        states, _ = self.rnn(self.embedding(tokens))
        return self.out(states)


def total_norm(model):
    return nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None]).item()


tagger = Tagger()
trainable = filter(lambda p: p.requires_grad, tagger.parameters())  #- here
#+ trainable = list(filter(lambda p: p.requires_grad, tagger.parameters()))
optimizer = torch.optim.SGD(trainable, lr=0.5, momentum=0.9)  #! also
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
sentences = torch.randint(0, VOCAB, (64, 9))
tags = sentences % 6
after_clip = []
for step in range(12):
    rows = torch.randint(0, 64, (16,))
    logits = tagger(sentences[rows])
    loss = criterion(logits.flatten(0, 1), tags[rows].flatten())
    optimizer.zero_grad(set_to_none=True)
    (4.0 * loss).backward()
    nn.utils.clip_grad_norm_(trainable, MAX_NORM)  #! here
    after_clip.append(total_norm(tagger))
    optimizer.step()
    print(f"{step:3d} loss {loss.item():.3f} norm {after_clip[-1]:.3f}")
