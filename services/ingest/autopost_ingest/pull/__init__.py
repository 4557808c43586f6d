"""Pull: poll feeds, JSON APIs and databases for new posts, each at its own interval.

The modules of a pull, in order: `scheduler` claims due sources, `rss`, `api` or `database` fetches, `reader` parses in
a worker process, `posts` converts items to posts, `import_items` stores them, one transaction per chunk.
"""
