x = __name__
