"""Suggest the known name that is most similar to an unknown one."""

from collections.abc import Collection
from difflib import get_close_matches

LONGEST_COMPARED = 100
"""A limit, because the name comes from a sender and the comparison time grows with its length."""


def suggest(name: str, known: Collection[str], *, most: int | None = None) -> str:
    """A suggestion for people; without a similar name all known ones, or the first ``most`` of them. Case does not
    count."""
    by_case = {each.casefold(): each for each in sorted(known)}
    nearest = get_close_matches(name[:LONGEST_COMPARED].casefold(), list(by_case), n=1)
    if nearest:
        return f"did you mean `{by_case[nearest[0]]}`?"
    listed = sorted(known)[:most]
    more = len(known) - len(listed)
    return f"known: {', '.join(listed) or 'none'}" + (f" and {more} more" if more else "")
