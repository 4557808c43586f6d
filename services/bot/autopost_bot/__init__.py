"""Answers shop customers in MAX, deterministically."""
