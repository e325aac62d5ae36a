"""BP818 focal-weight-of-mean."""

PROGRAMS = {
    "a factor in front": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,3); lab=torch.randint(0,3,(32,))
opt=torch.optim.SGD(net.parameters(),lr=.1)
for _ in range(3):
    ce=nn.functional.cross_entropy(net(x),lab) # <- BP818
    p=torch.exp(-ce)
    loss=0.25*(1-p)**2*ce
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "a module of binary cross entropy": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,1); lab=(y>0).float()
opt=torch.optim.SGD(net.parameters(),lr=.1)
class Focal(nn.Module):
    def __init__(s): super().__init__(); s.bce=nn.BCEWithLogitsLoss()
    def forward(s,o,t):
        b=s.bce(o,t) # <- BP818
        pt=(-b).exp()
        return ((1-pt)**2*b).mean()
crit=Focal()
for _ in range(3):
    loss=crit(net(x),lab)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "each sample on its own": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,3); lab=torch.randint(0,3,(32,))
opt=torch.optim.SGD(net.parameters(),lr=.1)
for _ in range(3):
    ce=nn.functional.cross_entropy(net(x),lab,reduction='none')
    p=torch.exp(-ce)
    loss=(0.25*(1-p)**2*ce).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "the root of a mean": """
import torch
from torch import nn
torch.manual_seed(0)
x=torch.randn(32,4); y=x.sum(1,keepdim=True)

net=nn.Linear(4,1)
opt=torch.optim.SGD(net.parameters(),lr=.1)
for _ in range(3):
    loss=torch.sqrt(nn.functional.mse_loss(net(x),y)+1e-8)
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
