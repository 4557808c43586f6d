-- What the bot may do.
GRANT EXECUTE ON FUNCTION
    bot_backlog(),
    check_writes(),
    read_credentials(uuid, text, text[]),
    schema_version()
    TO autopost_bot;
