# /// case
# title = "After a validation within an epoch the model stays in evaluation mode"
# category = "mode"
# kind = "eval-mode-in-training"
# kinds_also_ok = ["missing-train-call"]
# severity = "warning"
# names = ["val_start", "train_start", "eval"]
# symptom = "dropout is off for the rest of the epoch"
# symptom_check = "modes.count(False) > 0"
# cause = "train_start() is called once per epoch, val_start() in its middle"
# fix = "train_start() after the validation"
# evidence = [
#     { url = "https://github.com/fartashf/vsepp/issues/4", title = "Finish validation without running model.train()" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class VSE:
    """Image and caption embeddings with a hinge on hard negatives."""

    def __init__(self, margin=0.2, lr=2e-3):
        self.img_enc = nn.Sequential(nn.Linear(20, 24), nn.Dropout(0.3), nn.Linear(24, 12))
        self.txt_enc = nn.Sequential(nn.EmbeddingBag(40, 24), nn.Dropout(0.3), nn.Linear(24, 12))
        self.margin = margin
        self.params = [*self.img_enc.parameters(), *self.txt_enc.parameters()]
        self.optimizer = torch.optim.Adam(self.params, lr=lr)
        self.Eiters = 0

    def train_start(self):
        self.img_enc.train()
        self.txt_enc.train()

    def val_start(self):
        self.img_enc.eval()
        self.txt_enc.eval()

    def forward_loss(self, images, captions):
        im, s = F.normalize(self.img_enc(images), dim=1), F.normalize(self.txt_enc(captions), dim=1)
        scores = im @ s.T
        cost = (self.margin + scores - scores.diag()[:, None]).clamp(min=0)
        return cost.masked_fill(torch.eye(len(cost), dtype=torch.bool), 0).amax(1).mean()

    def train_emb(self, images, captions):
        self.Eiters += 1
        loss = self.forward_loss(images, captions)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def validate(model, batch):
    model.val_start()  #! also
    with torch.no_grad():
        return model.forward_loss(*batch).item()


def train(model, loader, val_batch, val_step):
    modes = []
    model.train_start()
    for batch in loader:
        modes.append(model.img_enc.training)
        model.train_emb(*batch)
        if model.Eiters % val_step == 0:
            validate(model, val_batch)  #! here
#+             model.train_start()
    return modes


torch.manual_seed(51)
make = lambda n: (torch.randn(n, 20), torch.randint(0, 40, (n, 6)))
model, modes = VSE(), []
for epoch in range(2):
    modes += train(model, [make(16) for _ in range(10)], make(32), val_step=4)
print(modes)
