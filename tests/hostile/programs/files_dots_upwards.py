# EXPECT: a relative path climbs out of nothing
# OUTCOME: succeeded
# CONTROL: breaches
for up in range(1, 12):
    try: print(open('../' * up + 'etc/passwd').read())
    except OSError as e: print(up, type(e).__name__)
