"""Is this the tensor whose gradient you will get? (1xx)"""
