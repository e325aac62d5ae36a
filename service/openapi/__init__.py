"""The OpenAPI document, made from what the views declare."""
