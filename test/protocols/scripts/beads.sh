#!/bin/bash
BEADS_DIR=".beads"
LOCK_FILE="$BEADS_DIR/.exclusive-lock"
# Create lock
cat > "$LOCK_FILE" <<EOF
{
"holder": "my-tool",
"pid": $$,
"hostname": "$(hostname)",
"started_at": "$(date -u +%Y-%m-%dT%H:%M:%SZ)",
"version": "1.0.0"
}
EOF
# Do work...
bd create "My issue" -p 1
bd update bd-42 --status in_progress
# Release lock
rm "$LOCK_FILE"
