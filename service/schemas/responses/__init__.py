"""What the service answers: one model for each thing that it tells, from which the document is made."""
