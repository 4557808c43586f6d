"""From content to plan, for all platforms; pure."""
