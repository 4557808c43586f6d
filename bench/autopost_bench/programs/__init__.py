"""Programs that run beside the measurements: dispatchers, a provider, senders, the least possible chain."""
