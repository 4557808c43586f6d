"""What all operator commands share: options, database gateway, selection of a workspace and a channel."""
