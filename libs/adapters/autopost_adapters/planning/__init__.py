"""From content to plan: the way that all platforms share; pure."""
