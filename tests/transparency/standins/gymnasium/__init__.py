"""A pole on a cart, by the equations of Barto, Sutton and Anderson (1983), with gymnasium's interface.

`reward_threshold` is low, so that a script that trains until it is reached ends within some tens of episodes.
"""

import math
from types import SimpleNamespace

import numpy as np

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02


class CartPole:
    def __init__(self):
        self.spec = SimpleNamespace(reward_threshold=20.0)
        self.draw = np.random.default_rng(0)

    def reset(self, seed=None):
        if seed is not None:
            self.draw = np.random.default_rng(seed)
        self.state, self.steps = self.draw.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        _, speed, angle, turn = self.state
        mass = CART + POLE
        push = ((FORCE if action == 1 else -FORCE) + POLE * HALF_LENGTH * turn**2 * math.sin(angle)) / mass
        turned = (GRAVITY * math.sin(angle) - math.cos(angle) * push) / (
            HALF_LENGTH * (4 / 3 - POLE * math.cos(angle) ** 2 / mass)
        )
        moved = push - POLE * HALF_LENGTH * turned * math.cos(angle) / mass
        self.state = self.state + SECONDS * np.array([speed, moved, turn, turned])
        self.steps += 1
        fell = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12))
        return self.state.astype(np.float32), 1.0, fell, self.steps >= 500, {}


def make(name, render_mode=None):
    assert (name, render_mode) == ("CartPole-v1", None)
    return CartPole()
