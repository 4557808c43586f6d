"""Where everything is measured: a Postgres of the bench's own, its workspaces, and what the machine alone can do."""
