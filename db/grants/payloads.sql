-- Raw payloads hold what people wrote: reading them is a right of its own, which an operator is given or not.
GRANT EXECUTE ON FUNCTION
    note_payload_access(uuid, text, text, text, interval)
    TO autopost_payloads;
