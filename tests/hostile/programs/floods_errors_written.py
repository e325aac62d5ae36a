# EXPECT: what goes to stderr counts with what goes to stdout
# OUTCOME: exceeded output
# CONTROL: silent: the reader counts at every level
import os
while True: os.write(2, b'E' * 65536); os.write(1, b'O' * 65536)
