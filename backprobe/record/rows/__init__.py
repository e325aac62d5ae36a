"""The rows of a record: one struct for each kind of fact, and the types of their fields."""
