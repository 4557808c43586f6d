"""`autopost up`: the servers and services on one machine, started, supervised and stopped."""
