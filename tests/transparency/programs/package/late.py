factor = 2
