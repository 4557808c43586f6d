"""The dispatcher: claims due deliveries, sends them and commits the outcomes."""
