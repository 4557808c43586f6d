"""One module per subject, each with ``measure(server, figures)``; ``subjects`` names them in order."""
