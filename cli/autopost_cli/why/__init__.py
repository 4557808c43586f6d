"""`autopost why`: what something waits for, in words."""
