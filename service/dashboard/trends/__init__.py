"""The pages of projects: their list, and of one what became of it day by day."""
