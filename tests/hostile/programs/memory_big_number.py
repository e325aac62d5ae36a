# EXPECT: one number of gigabytes is refused
# OUTCOME: exceeded memory
# CONTROL: silent: the limit on address space holds at every level
print((1 << (8 << 33)).bit_length())
