"""Put a post into its channel's template, under limits that no template can talk its way out of."""

from functools import lru_cache

from autopost_contracts.plan import Problem, Profile
from liquid import BoundTemplate, Environment
from liquid.exceptions import LiquidError

OUTPUT_LIMIT = 64 * 1024


class _Bounded(Environment):
    output_stream_limit = OUTPUT_LIMIT
    loop_iteration_limit = 1000
    local_namespace_limit = 64 * 1024
    context_depth_limit = 10


@lru_cache(maxsize=256)
def _parsed(body: str) -> BoundTemplate:
    return _Bounded().from_string(body)


def render(profile: Profile, text: str) -> tuple[str, Problem | None]:
    """The text itself where the channel has no template."""
    if profile.template_ref is None:
        return text, None
    if profile.template_body is None:
        return text, Problem("template_missing", "template_ref", f"there is no template {profile.template_ref!r}")
    try:
        return _parsed(profile.template_body).render(text=text).strip(), None
    except LiquidError as exc:
        return text, Problem("template_failed", "template_ref", f"{profile.template_ref}: {exc}")
