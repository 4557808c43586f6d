from db.builders import sent
async def test_round(tenant):
    channel = await tenant.channel(max_parallel=1)
    await tenant.enqueue("hello")
    claim = await tenant.claim_one()
    assert (await tenant.commit(sent(claim)))[0]["verdict"] == "committed"
    assert await tenant.history(claim["delivery_id"]) == ["enqueue", "send_attempt", "sent"]
    await tenant.claim()
    print(await tenant.due(channel), await tenant.next_due_at())
