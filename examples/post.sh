#!/bin/sh
# Send a post that lies in a file, with curl: ./post.sh post.json
#
# Reads AUTOPOST_URL and AUTOPOST_SECRET; DRY_RUN=1 shows what would happen. Give the post a source_ref: then it is taken
# in once, however often it is sent.
set -eu

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# The secret goes in by stdin: whoever lists the processes sees the arguments. No --fail: with --retry-all-errors, which
# asks again for an answer that was lost, it would ask again for a refusal too.
status=$(
    printf 'header = "Authorization: Bearer %s"\n' "$AUTOPOST_SECRET" |
        curl --silent --show-error --config - \
            --retry 5 --retry-all-errors --max-time 60 \
            --output "$answer" --write-out '%{http_code}' \
            --header 'Content-Type: application/json' \
            --data-binary "@$1" \
            "$AUTOPOST_URL/v1/posts${DRY_RUN:+?dry_run=1}"
)
cat "$answer"
echo
[ "$status" -lt 300 ]
