"""New messages: texts, media, albums, polls, locations."""
