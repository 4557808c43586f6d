"""Pull: feeds, JSON interfaces and databases that are asked for new posts, each at its own interval.

A pull meets the files in this order: `schedule` claims what is due, `rss`, `api` or `database` fetches it, `reader` has
it read by a process of its own, `posts` makes posts of the items, `bring` takes them in, a chunk in a transaction.
"""
