"""Audits and the policies that judge them."""
