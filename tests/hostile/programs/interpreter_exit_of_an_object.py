# EXPECT: an exit by an object whose every answer is an error is told as a failure
# OUTCOME: failed | exceeded
# CONTROL: silent: it is the run's own end
class Never:
    def __str__(self): raise MemoryError('no')
    __repr__ = __int__ = __index__ = __bool__ = __hash__ = __str__
raise SystemExit(Never())
