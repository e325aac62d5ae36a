"""Training: steps, updates, trained parameters, scalers, gradient modes."""
