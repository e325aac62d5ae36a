"""Measurements by ratio: what the product costs, written as tables that the documents quote."""
