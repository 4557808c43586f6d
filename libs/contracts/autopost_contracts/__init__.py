"""What the services say to each other: ids, payloads, plans, outcomes, events, subjects."""
