# EXPECT: a line without an end is cut
# OUTCOME: exceeded output
# CONTROL: silent: the reader counts at every level
print('x' * (8 << 20))
