"""What a refused post leaves in the log of forty channels: a little for each, and nothing of what must not be there."""

import msgspec
from ingest.support.ingest_client import IngestClient

URL = "http://ann:hush@host/?token=hush&call=+79001234567&mail=bob@example.com"
SECRETS = ("hush", "79001234567", "bob@example.com")
KEPT = """
SELECT jsonb_agg(t.error::text)
FROM (SELECT error FROM events WHERE error IS NOT NULL UNION ALL SELECT last_error FROM deliveries) AS t (error)
"""


async def test_a_small_request_with_many_faults_leaves_less_than_two_kilobytes_for_each_channel(
    client: IngestClient,
) -> None:
    text = f'<a href="ftp://{URL}">a</a><{"x" * 3000}>'

    await client.post({"text": text, "parse_mode": "HTML", "buttons": [{"text": "a", "url": URL}] * 99})

    kept = msgspec.json.decode(await client.sql(KEPT))
    assert len(kept) == 80
    assert max(len(error.encode()) for error in kept) < 2048
    assert [secret for secret in SECRETS if any(secret in error for error in kept)] == []


async def test_what_a_dry_run_says_of_tags_is_short_and_redacted(client: IngestClient) -> None:
    await client.sql("""UPDATE channels SET route_filter = '{"include_any": ["other"]}'""")
    tags = ["bob@example.com", "+79001234567", *(f"tag number {number}" for number in range(40))]

    answer = await client.try_out({"text": "a", "tags": tags})

    reasons = [reason for channel in answer.json()["channels"] for reason in channel["route"]["reasons"]]
    assert len(reasons) == 40
    assert max(map(len, reasons)) < 200
    assert [secret for secret in SECRETS if any(secret in reason for reason in reasons)] == []
