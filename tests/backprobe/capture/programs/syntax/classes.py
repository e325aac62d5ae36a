import dataclasses
import enum
import functools
import torch
from torch import nn

def twice(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs) * 2
    return inner

def named(name):
    return lambda cls: type(name, (cls,), {})

class Meta(type):
    def __new__(mcls, name, bases, body, **kw):
        print(name, sorted(k for k in body if not k.startswith("__")), kw)
        return super().__new__(mcls, name, bases, body)
    def __prepare__(name, bases, **kw):
        return {}

class Base(metaclass=Meta, option=1):
    """Docstring."""
    x: int
    y: "torch.Tensor" = torch.ones(2)
    z = [i for i in range(3)]
    if True:
        flag = True
    for k in range(2):
        locals()[f"made_{k}"] = k
    def __init_subclass__(cls, /, extra=None, **kw):
        super().__init_subclass__(**kw)
        cls.extra = extra

class Sub(Base, extra=5):
    __slots__ = ("__hidden", "tensor")
    def __init__(self):
        super().__init__()
        self.__hidden = torch.ones(2, requires_grad=True)
        self.tensor = self.__hidden * 2
        __local = self.tensor
        self.check = __class__ if False else None
    check = None
    @property
    def hidden(self):
        return self.__hidden
    @hidden.setter
    def hidden(self, value):
        self.__hidden = value
    @classmethod
    def make(cls):
        return cls
    @staticmethod
    def free(a, /, b, *, c=3):
        return a, b, c
    @twice
    def doubled(self):
        "doc"
        return self.__hidden

try:
    s = Sub()
except AttributeError as error:
    print(error)
Sub.__slots__ = ()
class Sub2(Base):
    def __init__(self):
        self.__hidden = torch.ones(2, requires_grad=True)
        self.t, self.__u = self.__hidden * 2, 3
        self.__u += 1
    def see(self):
        return sorted(vars(self)), __class__.__name__, super().__repr__()[:10]
s = Sub2()
print(s.see()[:2], s._Sub2__u, Base.__annotations__, Base.__doc__, Base.made_1)

@dataclasses.dataclass(frozen=True, order=True)
class Point:
    x: float
    y: float = dataclasses.field(default=2.0, repr=False)
    def norm(self) -> float:
        return (self.x ** 2 + self.y ** 2) ** 0.5

print(Point(3.0), Point(1.0) < Point(2.0), Point(3.0, 4.0).norm(), dataclasses.fields(Point)[1].name)

class Color(enum.Enum):
    RED = enum.auto()
    BLUE = 5
    @property
    def tensor(self):
        return torch.tensor(self.value)

print(list(Color), Color.BLUE.tensor)

@named("Renamed")
class Net(nn.Module):
    scale = 2
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 1)
        self.register_buffer("c", torch.zeros(1))
    def forward(self, x):
        def inner(h):
            nonlocal x
            x = x + 1
            return self.b(h) * Net.__mro__[0].scale
        return inner(torch.relu(self.a(x))) + self.c

torch.manual_seed(0)
net = Net()
print(type(net).__name__, type(net).__qualname__, Net.__bases__[0].__qualname__, net(torch.ones(1, 2)))

counter = 0
def bump():
    global counter, fresh
    counter += 1
    fresh = torch.ones(counter)
    def deep():
        nonlocal_value = 0
        def deeper():
            nonlocal nonlocal_value
            nonlocal_value += counter
            return nonlocal_value
        deeper()
        return deeper()
    return deep()
print(bump(), bump(), counter, fresh)
