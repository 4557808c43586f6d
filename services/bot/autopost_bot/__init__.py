"""The bot service: measures unanswered customer updates of the shop bot in MAX. It sends no replies yet."""
