"""`autopost payload`: reading stored raw payloads."""
