package protocol

import (
	"strings"

	"lockfs/cmd/lockfs/internal/cli"
)

// whoRemovedIt ends messages about a missing lock.
const whoRemovedIt = ": on a mount of lockfs `lockfs events` tells who"

// removeHint says how to end a lock in the way. It names the file unless said does.
func removeHint(said, path string) string {
	file := cli.Word(path)
	if strings.Contains(said, path) {
		file = "it"
	}
	return "wait until it is released, or if you are sure that it is nobody's remove " + file +
		" (on a mount of lockfs with `lockfs rm --force`)"
}
