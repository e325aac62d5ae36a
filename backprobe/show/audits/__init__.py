"""What came of an audit, for people and for other programs: values in, text out."""
