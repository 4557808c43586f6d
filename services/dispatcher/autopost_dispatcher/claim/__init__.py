"""When to claim in which workspace, and the claim itself."""
