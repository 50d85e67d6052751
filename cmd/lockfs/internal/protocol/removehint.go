package protocol

import (
	"strings"

	"lockfs/cmd/lockfs/internal/cli"
)

// whoRemovedIt is where one sees what became of a lock that is not there.
const whoRemovedIt = ": on a mount of lockfs `lockfs events` tells who"

// removeHint says what to do about a lock that is in the way. It names the file if that was not said yet.
func removeHint(said, path string) string {
	file := cli.Word(path)
	if strings.Contains(said, path) {
		file = "it"
	}
	return "wait until it is released, or if you are sure that it is nobody's remove " + file +
		" (on a mount of lockfs with `lockfs rm --force`)"
}
