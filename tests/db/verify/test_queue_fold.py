"""What the events of a delivery say it is, and what its row says, are the same."""

import json

from db.support.builders import transient


async def test_the_event_of_a_resolved_post_names_the_message_that_its_row_names(tenant):
    """The first part was acknowledged as 17; what the operator found is the second."""
    channel = await tenant.channel(on_ambiguous="hold")
    await tenant.backlog(channel, 1, calls=2)
    claim = await tenant.claim_one()
    await tenant.db.fetchval(
        "SELECT record_progress($1, $2, $3, 0, ARRAY['17'])",
        *(tenant.workspace, claim["delivery_id"], claim["claim_token"]),
    )
    await tenant.commit(transient(claim, ambiguous=True))

    await tenant.db.fetchval(
        "SELECT resolve_ambiguous($1, $2, 'sent', 'me', 'I looked', '18')", tenant.workspace, claim["delivery_id"]
    )

    [told] = await tenant.events("sent")
    meta = json.loads(told["meta"])
    assert meta["provider_message_id"] == (await tenant.only_delivery())["provider_message_id"] == "17"
    assert meta["found"] == "18"
