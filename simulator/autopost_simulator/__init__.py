"""Stand-ins for Telegram and MAX with faults and a log; never deployed to production."""
