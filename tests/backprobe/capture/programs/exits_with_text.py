import sys

print("before")
sys.exit("text \u00e9")
