"""Put a post into its channel's template, under limits that no template can talk its way out of."""

from functools import lru_cache
from typing import TYPE_CHECKING

from autopost_contracts.plan import Problem, Profile

if TYPE_CHECKING:
    from liquid import BoundTemplate

OUTPUT_LIMIT = 64 * 1024


@lru_cache(maxsize=256)
def _parsed(body: str) -> "BoundTemplate":
    from liquid import Environment  # here: a third of a second that only templates are worth

    class Bounded(Environment):
        output_stream_limit = OUTPUT_LIMIT
        loop_iteration_limit = 1000
        local_namespace_limit = 64 * 1024
        context_depth_limit = 10

    return Bounded().from_string(body)


def render(profile: Profile, text: str) -> tuple[str, Problem | None]:
    """The text itself where the channel has no template."""
    if profile.template_ref is None:
        return text, None
    if profile.template_body is None:
        return text, Problem("template_missing", "template_ref", f"there is no template {profile.template_ref!r}")
    from liquid.exceptions import LiquidError

    try:
        return _parsed(profile.template_body).render(text=text).strip(), None
    except LiquidError as exc:
        return text, Problem("template_failed", "template_ref", f"{profile.template_ref}: {exc}")
