"""The pages of audits: their list, and of one its programs by rules."""
