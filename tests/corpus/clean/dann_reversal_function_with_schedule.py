import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ReverseLayerF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.class_classifier = nn.Linear(24, 2)
        self.domain_classifier = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 2))

    def forward(self, x, alpha):
        f = self.feature(x)
        return self.class_classifier(f), self.domain_classifier(ReverseLayerF.apply(f, alpha))


net = DANN()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_class = loss_domain = nn.CrossEntropyLoss()
n_epoch, n_batch = 3, 4
for epoch in range(n_epoch):
    for i in range(n_batch):
        p = (i + epoch * n_batch) / n_epoch / n_batch
        alpha = 2.0 / (1.0 + math.exp(-10 * p)) - 1
        s_x, t_x = torch.randn(16, 6), torch.randn(16, 6) + 1
        s_y = (s_x[:, 0] > 0).long()
        net.zero_grad()
        cls, dom_s = net(s_x, alpha)
        _, dom_t = net(t_x, alpha)
        err = loss_class(cls, s_y) + loss_domain(dom_s, torch.zeros(16).long()) + loss_domain(dom_t, torch.ones(16).long())
        err.backward()
        opt.step()
    print(epoch, err.item(), alpha)
