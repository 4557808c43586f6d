-- What the bot may do.
GRANT EXECUTE ON FUNCTION
    bot_backlog(),
    chat_changes(uuid, text, bigint, int),
    chat_heads(uuid[], text[]),
    chat_messages(uuid, text, bigint, int),
    chat_ticket_key(uuid),
    check_writes(),
    list_actions(uuid, text, int),
    note_webhooks(uuid, jsonb),
    read_credentials(uuid, text, text[]),
    resolve_endpoint(text, text),
    schema_version(),
    start_action(uuid, uuid, jsonb),
    take_webhook_checks(interval, int),
    update_action(uuid, uuid, jsonb)
    TO autopost_bot;
