# EXPECT: files of other runs cannot be written, though their mode says 666
# OUTCOME: succeeded
# CONTROL: breaches
for path in ('__CANARY_FILE__', '__OTHER_RUN_FILE__', '__SHM_FILE__'):
    for mode in ('a', 'r+'):
        try:
            with open(path, mode) as file: file.write('mine')
        except OSError as e: print(type(e).__name__)
