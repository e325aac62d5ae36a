"""A data set that has the form of MNIST: ten classes of blurred blots, with noise; the same at each start."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset

SIZES = {True: 640, False: 256}


class MNIST(Dataset):
    """`data` is uint8 of shape [N, 28, 28], `targets` int64 of shape [N]."""

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        del root, download
        random.seed(int(train))  # a script may draw pairs with it and leave its seed to chance
        draw = np.random.default_rng(int(train))
        classes = np.random.default_rng(10).integers(0, 256, (10, 7, 7)).repeat(4, 1).repeat(4, 2)
        targets = np.arange(SIZES[train]) % 10
        images = classes[targets] * 0.8 + draw.integers(0, 52, (SIZES[train], 28, 28))
        self.data, self.targets = torch.from_numpy(images.astype(np.uint8)), torch.from_numpy(targets)
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, target = self.data[index].numpy(), int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target
