# EXPECT: an error whose text never comes ends at the limit
# OUTCOME: exceeded cpu | exceeded wall | failed
# CONTROL: silent: the limits hold at every level
class Slow(Exception):
    def __str__(self):
        while True: pass
    __repr__ = __str__
raise Slow
