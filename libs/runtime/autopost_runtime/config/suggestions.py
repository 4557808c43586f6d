"""Suggest the known name that is nearest to an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches

LONGEST_COMPARED = 100
"""The time to compare grows with the length, and the name comes from a sender."""


def suggest(name: str, known: Collection[str]) -> str:
    """What to write instead; every known name when none is near."""
    nearest = get_close_matches(name[:LONGEST_COMPARED], sorted(known), n=1)
    return f"did you mean `{nearest[0]}`?" if nearest else f"known: {', '.join(sorted(known))}"
