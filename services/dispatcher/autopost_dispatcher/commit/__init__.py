"""Committing the outcomes of sends, in batches."""
