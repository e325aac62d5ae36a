"""What all tables are made from: column types, the record's key, naming of constraints."""
