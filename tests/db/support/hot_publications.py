"""A calendar of publications with a long past, and the calls that start them."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from db.support.builders import Tenant
from db.support.publications import Publisher, now

BACKLOG = """
WITH over AS (
    INSERT INTO publications (workspace_id, channel_id, creative_draft, media_type, status, scheduled_at,
                              approved_plan_hash, published_message_id, published_at, delivery_id, updated_at)
    SELECT $1, $3, '{"text": "a"}', 'text', 'published', now() - n * interval '1 minute', 'plan', '17',
           now(), gen_random_uuid(), now() - interval '1 day'
    FROM generate_series(1, $2) AS n
    RETURNING publication_id
), planned AS (
    INSERT INTO publications (workspace_id, channel_id, creative_draft, media_type, status, scheduled_at,
                              approved_plan_hash)
    SELECT $1, $3, '{"text": "a"}', 'text', 'scheduled', now() + interval '1 day' + n * interval '1 minute', 'plan'
    FROM generate_series(1, $2) AS n
), under_way AS ( -- behind a paused channel
    INSERT INTO publications (workspace_id, channel_id, creative_draft, media_type, status, scheduled_at,
                              approved_plan_hash, delivery_id)
    SELECT $1, $3, '{"text": "a"}', 'text', 'publishing', now(), 'plan', gen_random_uuid()
    FROM generate_series(1, $2) AS n
)
INSERT INTO command_outbox (workspace_id, msg_id, subject, payload, created_at, published_at)
SELECT $1, 'publish:' || publication_id, 'delivery.commands', '{}', now() - interval '1 day', now() - interval '1 day'
FROM over
"""
"""Past the triggers."""


@dataclass
class Publications:
    publisher: Publisher
    endpoint: UUID
    due: UUID
    """Begun when its command comes."""
    post: str

    @classmethod
    async def open(cls, tenant: Tenant, channel: UUID, endpoint: UUID) -> "Publications":
        publisher = Publisher(tenant)
        publisher.channel = channel
        due = await publisher.scheduled("due")
        await publisher.due()
        assert await publisher.version(due) == 2
        post = json.dumps(await publisher.post(due))
        await publisher.scheduled("later", now() + timedelta(minutes=1))
        return cls(publisher, endpoint, due, post)

    def calls(self) -> dict[str, tuple[str, tuple[Any, ...]]]:
        workspace = self.publisher.tenant.workspace
        soon = now() + timedelta(minutes=2)
        return {
            "due_publications": ("SELECT due_publications(200, $1)", (soon,)),
            "orphaned_publications": ("SELECT * FROM orphaned_publications('0 seconds', 200)", ()),
            "unpublished_commands": ("SELECT * FROM unpublished_commands('0 seconds', 200)", ()),
            "commands_published": (
                "SELECT commands_published(array_agg(workspace_id), array_agg(command_id)) "
                "FROM unpublished_commands('0 seconds', 200)",
                (),
            ),
            "read_publication": ("SELECT read_publication($1, $2)", (workspace, self.due)),
            "begin_publication": ("SELECT begin_publication($1, $2, 2, $3)", (workspace, self.due, self.post)),
            "list_publications": ("SELECT list_publications($1)", (workspace,)),
            "list_publications, a day": ("SELECT list_publications($1, $2, $3)", (workspace, soon, soon)),
            "publication_access": ("SELECT publication_access($1, $2)", (workspace, self.endpoint)),
            "retain_commands": ("SELECT retain_commands('1 hour', 50)", ()),
            "retain_commands, none is old": ("SELECT retain_commands('10 days', 50)", ()),
        }
