"""Updates of a bot: what people do, and how the bot hears of it."""
