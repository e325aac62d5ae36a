"""What optimizers hold: lists that they were given, tensors that a name left, ones built anew, and schedules."""
