#!/bin/sh
# Send a post that lies in a file, with curl: ./post.sh post.json
#
# Reads AUTOPOST_URL and AUTOPOST_SECRET; DRY_RUN=1 shows what would happen. Give the post a source_ref: then it is taken
# in once, however often it is sent.
set -eu

# The secret goes in by stdin: whoever lists the processes sees the arguments.
printf 'header = "Authorization: Bearer %s"\n' "$AUTOPOST_SECRET" |
    curl --silent --show-error --fail-with-body --config - \
        --retry 5 --retry-connrefused --max-time 60 \
        --header 'Content-Type: application/json' \
        --data-binary "@$1" \
        "$AUTOPOST_URL/v1/posts${DRY_RUN:+?dry_run=1}"
echo
