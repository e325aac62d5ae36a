"""Runs that go on elsewhere, in somebody's training job: made by their recorder, sent frame by frame, ended once."""
