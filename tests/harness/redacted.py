"""What must be masked, what becomes of it, and what looks alike and must stay: for Python and for SQL."""

TOKEN = "1234567:AAabcdefghijklmnopqrstuvwxyz0123456"

PEOPLE = [
    "+79001234567",
    "+7 900 123-45-67",
    "+7 (900) 123-45-67",
    "+44 20 7946 0958",
    "+1 (415) 555-2671",
    "8 (495) 123-45-67",
    "8-900-123-45-67",
    "8 900 123 45 67",
    "8(4232)12-34-56",
    "89001234567",
    "79001234567",
    "(415) 555-2671",
    "ann@example.com",
    "ann.lee+news@mail.example.co.uk",
    "имя@почта.рф",
]
SECRETS = {
    TOKEN: "***",
    TOKEN.replace(":", "%3A"): "***",
    f"https://api.telegram.org/bot{TOKEN}/sendMessage": "https://api.telegram.org/bot***/sendMessage",
    "Authorization: Bearer abc.def": "Authorization: Bearer ***",
    "authorization: abc": "authorization: ***",
    "X-Max-Bot-Api-Secret: hush": "X-Max-Bot-Api-Secret: ***",
    "X-Api-Key=hush": "X-Api-Key=***",
    "Cookie: a=b; c=d": "Cookie: ***",
    "set-cookie: session=1; Path=/": "set-cookie: ***",
    "postgresql://me:hush@host/db": "postgresql://me:***@host/db",
    "?bot_token=hush&x=1": "?bot_token=***&x=1",
    "X-Amz-Signature=0a1b&X-Amz-Date=1": "X-Amz-Signature=***&X-Amz-Date=1",
    '{"token": "hu\\"sh", "x": 1}': '{"token": "***", "x": 1}',
    '{"a": "{\\"api_key\\":\\"hush\\"}"}': '{"a": "{\\"api_key\\":\\"***\\"}"}',
    "{'client_secret': 'hush'}": "{'client_secret': '***'}",
    '{"password": "cut he': '{"password": "***"',
}
HARMLESS = [
    "chat -1001234567890 not found",
    "-77000000000123",
    "2026-11-16T15:00:00.123456+00:00",
    "2026-11-16 15:00:00 +0300",
    "Too Many Requests: retry after 30",
    "0.79001234567",
    "10.20.30.40:8080",
    '"claim_token": "019a8b2c-8912-7abc-8900-123456789012"',
    "claim_token=019a8b2c",
    "@channel",
    "postgresql://reader@db.example.com:5432/autopost",
    "sha256:8900123456712345678901234567890123456789012345678901234567890123",
]
