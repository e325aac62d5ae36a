import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width, bottleneck=4):
        super().__init__()
        self.down, self.up = nn.Linear(width, bottleneck), nn.Linear(bottleneck, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.adapter = Adapter(width)

    def forward(self, x):
        return self.adapter(x + self.mix(x))


class Encoder(nn.Module):
    def __init__(self, width=16, depth=3, classes=4):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Thaw:
    def __init__(self, model, optimizer, schedule, lr):
        self.model, self.optimizer, self.schedule, self.lr = model, optimizer, schedule, lr

    def __call__(self, epoch):
        for index in self.schedule.get(epoch, ()):
            parameters = list(self.model.layers[index].mix.parameters())
            for p in parameters:
                p.requires_grad_(True)
            self.optimizer.add_param_group({"params": parameters, "lr": self.lr})


torch.manual_seed(9)
model = Encoder()
for layer in model.layers:
    layer.mix.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
thaw = Thaw(model, optimizer, {2: [2], 3: [1, 0]}, lr=1e-3)
x = torch.randn(96, 16)
y = x[:, :4].argmax(1)
for epoch in range(5):
    thaw(epoch)
    for rows in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} groups {len(optimizer.param_groups)}")
