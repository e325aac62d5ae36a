# EXPECT: an exit code of a thousand digits is a failure like any other
# OUTCOME: failed exception
# CONTROL: silent: it spoils its own run only
raise SystemExit(7 ** 4000)
