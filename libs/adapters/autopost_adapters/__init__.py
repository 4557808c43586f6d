"""One package per platform: limits, the pure compile step, the HTTP call, the error classifier."""
