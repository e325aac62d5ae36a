# EXPECT: an error of many megabytes is cut
# OUTCOME: exceeded output | failed
# CONTROL: silent: the reader counts at every level
raise ValueError('A' * (50 << 20))
