"""`autopost verify`: deliveries and the audit stream compared with the events."""
