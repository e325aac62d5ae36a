# EXPECT: an error whose every attribute lies or raises is an error like any other
# OUTCOME: failed exception
# CONTROL: silent: it spoils its own run only
class Meta(type):
    @property
    def __name__(cls): raise SystemExit(0)
    @property
    def __qualname__(cls): return '\ud800\x1b[2J' * 9000
    @property
    def __module__(cls): return 7
    def __instancecheck__(cls, one): raise KeyboardInterrupt
    def __subclasscheck__(cls, one): raise GeneratorExit
class Lie(Exception, metaclass=Meta):
    __notes__ = 7
    @property
    def __class__(self): return SystemExit
    @property
    def args(self): raise MemoryError
    def __str__(self): raise BaseException(self)
    def __repr__(self): return 7
    def __getattribute__(self, name): raise RecursionError(name)
    def __eq__(self, other): raise SystemExit(0)
    def __hash__(self): raise SystemExit(0)
one, two = Lie(), Lie()
BaseException.__cause__.__set__(one, two)
BaseException.__context__.__set__(two, one)
raise one
