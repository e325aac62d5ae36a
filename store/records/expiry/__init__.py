"""Records that go: by month, past their time, over a tenant's share, or of attempts that came to nothing."""
