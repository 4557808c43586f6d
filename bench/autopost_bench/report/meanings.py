"""What each bar says, for a visitor of the page who has not read the code."""

MEANINGS = {
    "no-op drain, 40 channels ÷ PgQueuer": (
        "How much faster a full queue is emptied than by PgQueuer with its best settings, when sending itself "
        "costs nothing. 2 is twice as fast."
    ),
    "no-op drain, 40 channels ÷ procrastinate": ("The same against procrastinate."),
    "drain over 1,000 channels ÷ over 40": (
        "Whether the same posts take longer when they go to many channels. 1 is no difference."
    ),
    "drain over 10,000 channels ÷ over 40": ("The same with 10,000 channels."),
    "enqueue to 1,000 channels ÷ PgQueuer enqueue": (
        "Deliveries stored per second, for posts that go to 1,000 channels each, against jobs that PgQueuer stores."
    ),
    "enqueue to 40 channels ÷ PgQueuer enqueue": ("The same for posts to 40 channels."),
    "cost with a long backlog ÷ with a short one": (
        "Whether one delivery costs the database more when a million wait. 1 is no more."
    ),
    "cost with a long history ÷ without": ("The same with five million deliveries that were sent before."),
    "cost beside a blocked channel ÷ without": ("The same when 100,000 deliveries wait behind a paused channel."),
    "cost of a burst without statistics ÷ of a backlog": (
        "A million waiting deliveries when the database has no planner statistics, as after a restore."
    ),
    "cost of a burst with empty ones ÷ of a backlog": (
        "The same when its statistics are those of an empty queue, as when a burst follows a quiet night."
    ),
    "status page with a long backlog, seconds": (
        "How long the status page takes to show a million waiting deliveries."
    ),
    "audit stream behind a long backlog, seconds": ("How far the audit stream is behind while all that is stored."),
    "drain with an old snapshot held ÷ without": (
        "What is left of the speed while somebody keeps a transaction open, such as a backup."
    ),
    "slot use under backlog ÷ the rate": (
        "How much of an allowed rate is used when there is enough to send. 1 is all."
    ),
    "slots too close in the ledger": ("How many calls were planned sooner after another than a rate allows."),
    "windows over the limit at the receiver": (
        "How often a platform would have counted more calls in a second, or in the time of one call, than it allows."
    ),
    "deliveries with an HTTP call ÷ the client alone": (
        "How much of the speed of the bare HTTP client is left with the whole queue around it."
    ),
    "two replicas ÷ one, no-op": ("Whether a second dispatcher on the same two cores slows the first."),
    "webhook to call, p50 ÷ bare chain": (
        "The usual time from a sender's request to the call at the platform, against the least chain that could do "
        "it: a request, a commit, a wakeup and a call."
    ),
    "webhook to call, p99 ÷ bare chain": ("The same for the slowest one in a hundred."),
    "enqueued through HTTP, 40 channels ÷ direct": (
        "How much of the speed of the database function is left for posts that come over HTTP."
    ),
    "posts to one channel ÷ bare commits": (
        "Posts accepted per second against the smallest transactions that the database can make."
    ),
    "200 tenants at 27/s: calls ÷ what their rates allow": (
        "200 tenants have more to send than their tokens may, 27 calls a second each, 5,400 together. 1 means that "
        "every one of these calls was made."
    ),
    "2,000 tenants at 2.7/s: calls ÷ what their rates allow": (
        "The same 5,400 calls a second, spread over ten times as many tenants."
    ),
    "200 tenants: two dispatchers ÷ one": ("Whether a second dispatcher takes anything from the first. 1 is nothing."),
    "processor time per call, 2,000 tenants ÷ 20": (
        "What one call costs when 5,400 calls a second belong to 2,000 tenants instead of 20; the database and the "
        "receiving side are counted too. 1 is the same."
    ),
    "1,000 tenants at 27/s ÷ one without limits": (
        "1,000 tenants want 27,000 calls a second, more than the machine can make. Calls made, against those for "
        "one tenant whose rate does not bind."
    ),
    "1,000 tenants at 27/s: most served ÷ least": (
        "The same run: the tenant with the most calls against the one with the fewest. 1 is the same for all."
    ),
    "200 tenants beside four bad neighbours: calls ÷ rates": (
        "The 200 tenants again, beside one with a long backlog, one with 10,000 channels, one that floods, and one "
        "whose platform takes calls and never answers. 1 means that the 200 notice nothing."
    ),
    "10,000 idle tenants: part of a core": (
        "What a dispatcher and its database connections do for 10,000 tenants that have nothing to send. 0.01 is a "
        "hundredth of one processor core."
    ),
    "10,000 idle tenants: megabytes": (
        "How much more memory a dispatcher has after it has sent the posts of 10,000 tenants, and rests."
    ),
    "no-op drain of one tenant ÷ the other checkout": (
        "Whether one tenant with a full queue and no limits is served as fast as by the earlier version it is compared "
        "with, when sending costs nothing. 1 is the same, more is faster."
    ),
    "HTTP drain of one tenant ÷ the other checkout": "The same with an HTTP call for each delivery.",
    "webhook to call, p50 ÷ the other checkout": (
        "The usual time from a sender's request to the call at the platform, against the same version. Less is faster."
    ),
    "webhook to call beside 200 busy tenants ÷ alone": (
        "How much longer a single post takes while 200 other tenants send all that they may."
    ),
    "idle streams that one process holds": (
        "Open streams of as many chats, each of which has got its keep-alive. No more than these were tried."
    ),
    "memory of an idle stream, bytes": ("How much the process of the service grows with each of them."),
    "one change to 1,000 streams, p99 ÷ bare hub": (
        "From the request that starts an action until the slowest of a hundred clients has the event, against the "
        "least server that can write to as many streams."
    ),
    "start to another replica, p50 ÷ bare chain": (
        "The usual time from the request that starts an action at one replica until a client of another one has the "
        "event, against the least chain that could do it: a request, a commit, a wakeup over NATS and a write."
    ),
    "start to another replica, p99 ÷ bare chain": ("The same for the slowest one in a hundred."),
    "starts through HTTP ÷ bare commits": (
        "Actions started per second by 64 callers, against the smallest transactions that the database can make."
    ),
    "500 written conversations, seconds": ("How long `autopost bot test` takes for 500 of them, with its start."),
    "update to call, p50 ÷ bare bot chain": (
        "From the webhook of an idle bot to its call, against the least that any bot must do: take a POST in, commit "
        "it, wake, read, commit the answer, call."
    ),
    "update to call, p99 ÷ bare bot chain": ("The same for the slowest hundredth."),
    "turns in 200 workspaces ÷ bare commits": (
        "Updates that one process takes, decides, commits, sends and records per second, when sending itself costs "
        "nothing."
    ),
    "cost of a turn beside a million idle chats ÷ without": (
        "Whether a turn costs more beside a million chats at rest, a million log lines and 100,000 due chats of a "
        "paused workspace. 1 is no more."
    ),
    "turns of two replicas ÷ one": ("Whether two replicas get in each other's way. 1 is not at all."),
    "one decision with 200 rules, microseconds": (
        "How long the engine takes for a text of 200 characters, with 200 rules of ten keywords each."
    ),
    "time to call, p50, milliseconds": (
        "The usual time from the moment for which a publication was scheduled to its call at the platform, when "
        "nothing else is going on."
    ),
    "time to call, p99, milliseconds": ("The same for the slowest one in a hundred."),
    "time to call without NATS, p99, milliseconds": (
        "The same while NATS is stopped, so that the dispatcher finds out by polling every two seconds."
    ),
    "calls before their time": ("How many publications went out early."),
    "1,000 due in one second: calls ÷ the rate": (
        "A thousand publications in a hundred channels of one token that are due within a second: how much of the "
        "allowed rate is used until the last one is sent. 1 is all."
    ),
    "drain with the trigger of publications ÷ without": (
        "What ordinary posts pay for the trigger by which publications follow their deliveries. 1 is nothing."
    ),
}
