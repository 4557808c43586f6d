"""After real traffic with faults every row is what its events say, and the stream has all of them."""

from datetime import timedelta

from harness.autopost_command import Autopost
from harness.eventually import eventually

from e2e.conftest import StartSystem


async def test_a_running_system_verifies_clean_after_faults_and_a_doctored_row_is_found(
    start_system: StartSystem, nats_url: str, nats_namespace: str
) -> None:
    system = await start_system()
    nats = {"AUTOPOST_NATS_URL": nats_url, "AUTOPOST_NATS_NAMESPACE": nats_namespace}
    autopost = Autopost(system.places["database_url"], **nats)
    await system.control("faults", {"name": "bad", "times": 5, "effect": {"html": 502}})
    await system.control("faults", {"name": "lost", "times": 3, "effect": {"accept": True, "garbage": True}})
    for number in range(3):
        assert (await system.post(text=f"post {number}")).status_code == 202

    async def all_sent() -> bool:
        return await system.statuses() == {"sent": 120}

    async def relayed() -> bool:
        """What the relay has not come to yet is no difference, but is not looked for either."""
        ran = await autopost("verify", "--json")
        assert (ran.code, ran.json["differences"]) == (0, [])
        return bool(ran.json["checked"]["messages"] == await system.database.fetchval("SELECT count(*) FROM events"))

    await eventually(all_sent, within=timedelta(seconds=60))
    await eventually(relayed, within=timedelta(seconds=30))

    await system.database.execute("UPDATE deliveries SET provider_message_id = 'another'")
    ran = await autopost("verify", "--json", "--no-stream")
    assert (ran.code, ran.json["found"]) == (1, 120)
