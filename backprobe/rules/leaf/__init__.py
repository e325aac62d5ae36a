"""Is this the tensor whose gradient you will get? Rules 1xx."""
