# /// case
# title = "Multi-task trainer clips after the step"
# category = "optimizer"
# kind = "clip-after-step"
# severity = "warning"
# names = ["max_grad_norm", "clip_grad_norm_", "step"]
# symptom = "max_grad_norm has no effect"
# symptom_check = "min(trainer.used) > 0.2"
# cause = "the step has used the gradients before they are clipped"
# fix = "clip between backward and step"
# evidence = [
#     { url = "https://github.com/awslabs/graphstorm/issues/1366", title = "possible max_grad_norm implementation error" },
#     { url = "https://github.com/VGraphRNN/VGRNN/issues/4", title = "Incorrect use of torch.nn.utils.clip_grad_norm" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanGNN(nn.Module):
    def __init__(self, dims=(6, 16, 16)):
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(i, o) for i, o in zip(dims, dims[1:]))
        self.near = nn.ModuleList(nn.Linear(i, o, bias=False) for i, o in zip(dims, dims[1:]))
        self.node_decoder, self.link_decoder = nn.Linear(dims[-1], 3), nn.Bilinear(dims[-1], dims[-1], 1)

    def forward(self, adj, x):
        norm = adj / adj.sum(1, keepdim=True).clamp_min(1)
        for own, near in zip(self.own, self.near):
            x = F.relu(own(x) + near(norm @ x))
        return x


class MultiTaskTrainer:
    def __init__(self, model, lr=1e-2, max_grad_norm=None, grad_norm_type=2.0):
        self.model, self.max_grad_norm, self.grad_norm_type = model, max_grad_norm, grad_norm_type
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.used = []

    def loss(self, adj, x, labels):
        h = self.model(adj, x)
        node = F.cross_entropy(self.model.node_decoder(h), labels)
        src, dst = adj.nonzero(as_tuple=True)
        wrong = dst[torch.randperm(len(dst))]
        link = self.model.link_decoder(h[src], h[dst]), self.model.link_decoder(h[src], h[wrong])
        return node + F.softplus(-link[0]).mean() + F.softplus(link[1]).mean()

    def fit(self, graphs):
        for adj, x, labels in graphs:
            loss = self.loss(adj, x, labels)
            self.optimizer.zero_grad()
            loss.backward()
#+             if self.max_grad_norm is not None:
#+                 nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm, self.grad_norm_type)
            self.used.append(float(torch.stack([p.grad.norm() for p in self.model.parameters()]).norm()))
            self.optimizer.step()  #! also
            if self.max_grad_norm is not None:  #- also
                nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm, self.grad_norm_type)  #- here


torch.manual_seed(52)
trainer = MultiTaskTrainer(MeanGNN(), max_grad_norm=0.1)
trainer.fit([((torch.rand(10, 10) < 0.3).float(), torch.randn(10, 6), torch.randint(0, 3, (10,))) for _ in range(4)])
print(trainer.used)
