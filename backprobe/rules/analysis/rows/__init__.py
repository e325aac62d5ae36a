"""The record's rows: found by key, cut at a moment, and whether they are complete."""
