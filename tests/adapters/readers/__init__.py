"""Readers of what platforms are sent, written from descriptions of the platforms and from nothing of this project.

They share no code with the adapters or the simulator, so a mistake of those cannot be theirs as well.
"""
