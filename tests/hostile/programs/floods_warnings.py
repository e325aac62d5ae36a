# EXPECT: warnings without end are cut
# OUTCOME: exceeded | succeeded
# CONTROL: silent: capture and the reader count at every level
import warnings
warnings.simplefilter('always')
for n in range(20_000): warnings.warn(f'{n} ' + 'w' * 200)
