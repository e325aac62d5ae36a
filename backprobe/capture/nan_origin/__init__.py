"""The deep tier: a second run of the program that finds the op of the first NaN."""
