"""Descriptions of the kinds for others: schemas, shapes, columns and explanations."""
