"""BP402 step-before-backward."""

HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
critic, maker = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)), nn.Linear(2, 3)
critic_opt = torch.optim.SGD(critic.parameters(), lr=0.1)
maker_opt = torch.optim.SGD(maker.parameters(), lr=0.1)
"""

LEARNER = """
import torch
from torch import nn


class Learner:
    def __init__(self):
        self.critic = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
        self.maker = nn.Linear(2, 3)
        self.critic_opt = torch.optim.SGD(self.critic.parameters(), lr=0.1)
        self.maker_opt = torch.optim.SGD(self.maker.parameters(), lr=0.1)

    def critic_loss(self, real, noise):
        return (self.critic(self.maker(noise).detach()) - self.critic(real)).mean()

    def maker_loss(self, noise):
        return -self.critic(self.maker(noise)).mean()

    def minimise(self, loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def update(self, real, noise):
        {body}


torch.manual_seed(0)
learner = Learner()
for _ in range(3):
    learner.update(torch.randn(8, 3), torch.randn(8, 2))
"""

PROGRAMS = {
    "a method walks and steps, for one loss after the other": LEARNER.format(
        body="""first = self.critic_loss(real, noise)
        second = self.maker_loss(noise)  # <- BP402
        self.minimise(first, self.critic_opt)
        self.minimise(second, self.maker_opt)"""
    ),
    "a method walks and steps, and each loss is computed when it is due": LEARNER.format(
        body="""self.minimise(self.critic_loss(real, noise), self.critic_opt)
        self.minimise(self.maker_loss(noise), self.maker_opt)"""
    ),
    "a function takes the pairs": HEAD
    + """
def descend(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

for _ in range(3):
    fake = maker(torch.randn(8, 2))
    real_term = (critic(fake.detach()) - critic(torch.randn(8, 3))).mean()
    fake_term = -critic(fake).mean()  # <- BP402
    descend(real_term, critic_opt)
    descend(fake_term, maker_opt)
""",
    "weights are updated by hand in a function": HEAD
    + """
def descend(net, rate=0.1):
    with torch.no_grad():
        for p in net.parameters():
            p -= rate * p.grad
            p.grad = None

for _ in range(3):
    fake = maker(torch.randn(8, 2))
    first = (critic(fake.detach()) - critic(torch.randn(8, 3))).mean()
    second = -critic(fake).mean()
    first.backward()
    descend(critic)  # <- BP402
    second.backward()
    descend(maker)
""",
    "both are walked before a function steps": HEAD
    + """
def advance(*optimizers):
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()

for _ in range(3):
    fake = maker(torch.randn(8, 2))
    first = (critic(fake.detach()) - critic(torch.randn(8, 3))).mean()
    second = -critic(fake).mean()
    first.backward(inputs=list(critic.parameters()))
    second.backward(inputs=list(maker.parameters()))
    advance(critic_opt, maker_opt)
""",
    "a method steps between the two": LEARNER.format(
        body="""first, second = self.critic_loss(real, noise), self.maker_loss(noise)
        first.backward()
        self.advance(self.critic_opt)  # <- BP402
        second.backward()
        self.advance(self.maker_opt)

    def advance(self, optimizer):
        optimizer.step()
        optimizer.zero_grad()"""
    ),
    "the later loss stands whole behind the first, before its step": HEAD
    + """
for _ in range(3):
    noise, real = torch.randn(8, 2), torch.randn(8, 3)
    critic_loss = (critic(maker(noise).detach()) - critic(real)).mean()
    maker_loss = -critic(maker(noise)).mean()  # <- BP402
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "the later loss stands behind the first in statements of its own": HEAD
    + """
for _ in range(3):
    noise, real = torch.randn(8, 2), torch.randn(8, 3)
    critic_loss = (critic(maker(noise).detach()) - critic(real)).mean()
    fake = maker(noise)
    score = critic(fake)
    maker_loss = -score.mean()  # <- BP402
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "the later loss stands behind the step in several statements": HEAD
    + """
for _ in range(3):
    noise, real = torch.randn(8, 2), torch.randn(8, 3)
    critic_loss = (critic(maker(noise).detach()) - critic(real)).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    fake = maker(noise)
    score = critic(fake)
    maker_loss = -score.mean()
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "the later loss has a part of its own in front of the first, and another behind it": HEAD
    + """
for _ in range(3):
    noise, real = torch.randn(8, 2), torch.randn(8, 3)
    fake = maker(noise)
    critic_loss = (critic(fake.detach()) - critic(real)).mean()
    score = critic(fake)
    maker_loss = -score.mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()  # <- BP402
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "an earlier statement made a part of the later loss": HEAD
    + """
for _ in range(3):
    fake = maker(torch.randn(8, 2))
    critic_loss = (critic(fake.detach()) - critic(torch.randn(8, 3))).mean()
    maker_loss = -critic(fake).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()  # <- BP402
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "the loss that is walked last was computed first": HEAD
    + """
for _ in range(3):
    noise = torch.randn(8, 2)
    maker_loss = -critic(maker(noise)).mean()
    critic_loss = (critic(maker(noise).detach()) - critic(torch.randn(8, 3))).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()  # <- BP402
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
    "each loss is computed behind the step before": HEAD
    + """
for _ in range(3):
    noise = torch.randn(8, 2)
    critic_loss = (critic(maker(noise).detach()) - critic(torch.randn(8, 3))).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    maker_loss = -critic(maker(noise)).mean()
    maker_opt.zero_grad()
    maker_loss.backward()
    maker_opt.step()
""",
}
