"""Suggest the known name that is most similar to an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches

LONGEST_COMPARED = 100
"""A limit, because the name comes from a sender and the comparison time grows with its length."""


def suggest(name: str, known: Collection[str]) -> str:
    """A suggestion for people; all known names when none is similar."""
    nearest = get_close_matches(name[:LONGEST_COMPARED], sorted(known), n=1)
    return f"did you mean `{nearest[0]}`?" if nearest else f"known: {', '.join(sorted(known))}"
