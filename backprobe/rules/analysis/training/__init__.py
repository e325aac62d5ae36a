"""Training: steps, updates, optimizers' parameters, schedules, scalers, gradient modes."""
