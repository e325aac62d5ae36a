# /// case
# title = "Moving average of a loss for the log keeps the graphs of all iterations"
# category = "retention"
# kind = "graph-grows-each-step"
# kinds_also_ok = ["graph-retained-accumulator", "graph-retained-in-container"]
# severity = "warning"
# names = ["loss_term_ema", "ema"]
# symptom = "the average's graph grows by an iteration with each step"
# symptom_check = "depth(agent.loss_term_ema.grad_fn) > 19"
# cause = "losses enter the average with their graphs"
# fix = "average detached values"
# evidence = [
#     { url = "https://github.com/alexhernandezgarcia/gflownet/pull/133", title = "Compute EMAs outside of pytorch" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(10)


class GFlowAgent:
    def __init__(self, n_states=12, n_actions=3, ema_alpha=0.5):
        self.forward_policy = nn.Sequential(nn.Linear(n_states, 24), nn.LeakyReLU(), nn.Linear(24, n_actions))
        self.log_z = nn.Parameter(torch.ones(4))
        self.opt = torch.optim.Adam([*self.forward_policy.parameters(), self.log_z], lr=1e-2)
        self.ema_alpha = ema_alpha
        self.loss_term_ema = None
        self.loss_flow_ema = None

    def ema(self, old, new):
        if old is None:
            return new
        return self.ema_alpha * new + (1 - self.ema_alpha) * old  #! here

    def losses(self, states, actions, reward):
        logp = self.forward_policy(states).log_softmax(-1)
        chosen = logp.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        flow = (self.log_z.sum() + chosen - reward.log()).pow(2)
        return flow[-4:].mean(), flow[:-4].mean()

    def train_step(self, batch):
        term, flow = self.losses(*batch)
        self.loss_term_ema = self.ema(self.loss_term_ema, term)  #- here
        self.loss_flow_ema = self.ema(self.loss_flow_ema, flow)  #- here
#+         self.loss_term_ema = self.ema(self.loss_term_ema, term.detach())
#+         self.loss_flow_ema = self.ema(self.loss_flow_ema, flow.detach())
        loss = term + flow
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


agent = GFlowAgent()
for it in range(20):
    batch = torch.randn(16, 12), torch.randint(0, 3, (16,)), torch.rand(16) + 0.1
    agent.train_step(batch)


def depth(node):
    n = 0
    while node is not None:
        earlier = [f for f, _ in node.next_functions if f is not None]
        node, n = earlier[-1] if earlier else None, n + 1
    return n


print(depth(agent.loss_term_ema.grad_fn))
