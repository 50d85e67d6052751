#!/bin/sh
# Before the files go: dpkg says "remove" or "upgrade", rpm how many will be left. An upgrade stops nothing.
set -e

case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
grep -qs '^LOCKFS_ROLE=' /etc/lockfs/lockfs.env || exit 0

# It refuses while programs use the mount, and names them; so does the removal then.
lockfs down
