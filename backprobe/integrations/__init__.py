"""Training loops of others, watched from their first step to their last; a module here imports its library."""
