"""The contracts between the services: ids, payloads, plans, outcomes, events, subjects."""
