# EXPECT: the list of accounts is out of reach, also through the C library
# OUTCOME: succeeded
# CONTROL: breaches
import pwd
for one in pwd.getpwall(): print(':'.join(map(str, one)))
