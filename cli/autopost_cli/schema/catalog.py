"""Describe the schema of a database as sorted lines, to compare two databases.

Weekly partitions of `events` and the migration ledger are left out: they depend on time, not on the schema.
"""

from hashlib import sha256
from typing import Any

import asyncpg

OWN = "relnamespace = 'public'::regnamespace AND NOT relispartition AND relname NOT LIKE 'schema\\_ledger%'"

QUERIES = {
    "type": """
        SELECT format('%s: %s', t.typname, string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder))
        FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
        WHERE t.typnamespace = 'public'::regnamespace GROUP BY t.typname""",
    "relation": f"""
        SELECT format('%s %s %s %s %s %s', relkind, relname, coalesce(array_to_string(reloptions, ','), ''),
                      coalesce(pg_get_partkeydef(oid), ''), coalesce(relacl::text, ''),
                      CASE WHEN relrowsecurity THEN 'row security' ELSE '' END)
        FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'S') AND {OWN}""",
    "column": f"""
        SELECT format('%s.%s %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                      CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END, a.attgenerated,
                      coalesce(pg_get_expr(d.adbin, d.adrelid), ''))
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v') AND {OWN}""",
    "constraint": f"""
        SELECT format('%s %s %s', c.relname, k.conname, pg_get_constraintdef(k.oid))
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE {OWN}""",
    "index": f"""
        SELECT pg_get_indexdef(i.indexrelid)
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE {OWN}""",
    "trigger": f"""
        SELECT format('%s %s', pg_get_triggerdef(t.oid), t.tgenabled)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND {OWN}""",
    "view": f"SELECT format('%s %s', relname, pg_get_viewdef(oid)) FROM pg_class WHERE relkind = 'v' AND {OWN}",
    "function": """
        SELECT format('%s %s', pg_get_functiondef(oid), coalesce(proacl::text, ''))
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace""",
}


async def describe(connection: "asyncpg.Connection[Any]") -> list[str]:
    lines = []
    for kind, query in QUERIES.items():
        lines += [f"{kind} {row[0]}" for row in await connection.fetch(query)]
    return sorted(lines)


async def digest(connection: "asyncpg.Connection[Any]") -> str:
    return sha256("\n".join(await describe(connection)).encode()).hexdigest()
