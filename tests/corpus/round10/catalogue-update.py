# /// case
# title = "The optimizer still holds the item table from before the catalogue grew"
# category = "optimizer"
# kind = "optimizer-holds-replaced-parameters"
# kinds_also_ok = ["optimizer-built-before-parameters-changed", "new-parameters-not-in-optimizer", "stale-optimizer-parameters"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "grow", "items"]
# symptom = "after the update no item vector changes any more, the new items keep their initial vectors"
# symptom_check = "not any(p is model.items.weight for g in recommender.optimizer.param_groups for p in g['params'])"
# cause = "grow replaces the embedding by a new module, the optimizer was made with the parameters of the old one."
# fix = "make the optimizer anew after growing"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class MatrixFactorisation(nn.Module):
    def __init__(self, users, items, dim=12):
        super().__init__()
        self.users = nn.Embedding(users, dim)
        self.items = nn.Embedding(items, dim)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)

    def grow(self, unseen):
        known, dim = self.items.weight.shape
        table = nn.Embedding(known + unseen, dim)
        nn.init.normal_(table.weight, std=0.1)
        with torch.no_grad():
            table.weight[:known] = self.items.weight
        self.items = table  #! also

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


class Recommender:
    def __init__(self, model, lr=0.03):
        self.model, self.lr = model, lr
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)  #! also

    def partial_fit(self, user, item, liked, passes=6, batch=128):
        unseen = int(item.max()) + 1 - self.model.items.num_embeddings
        if unseen > 0:
            self.model.grow(unseen)  #! here
#+             self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        losses = []
        for _ in range(passes):
            for rows in torch.randperm(len(user)).split(batch):
                score = self.model(user[rows], item[rows])
                loss = F.binary_cross_entropy_with_logits(score, liked[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()  #! also
                losses.append(loss.item())
        return losses


class Shop:
    def __init__(self, users=40, items=60, dim=3):
        self.taste, self.style = torch.randn(users, dim), torch.randn(items, dim)

    def clicks(self, n, items):
        user = torch.randint(0, len(self.taste), (n,))
        item = torch.randint(0, items, (n,))
        affinity = (self.taste[user] * self.style[item]).sum(-1)
        return user, item, (affinity > 0).float()


torch.manual_seed(19)
shop = Shop()
model = MatrixFactorisation(users=40, items=45)
recommender = Recommender(model)
monday = recommender.partial_fit(*shop.clicks(900, 45))
tuesday = recommender.partial_fit(*shop.clicks(900, 60))
print(f"monday {monday[0]:.3f} -> {monday[-1]:.3f}; tuesday {tuesday[0]:.3f} -> {tuesday[-1]:.3f}")
