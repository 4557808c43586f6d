"""Claims what is due, sends it, commits how it ended."""
