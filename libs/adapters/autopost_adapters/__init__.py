"""One package per platform: limits, pure compile step, HTTP calls, error classification."""
