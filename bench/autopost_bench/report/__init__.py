"""What is asked of the figures, and how a run is reported."""
