"""The MAX Bot API, imitated."""
