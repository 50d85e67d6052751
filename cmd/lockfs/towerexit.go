package main

// Exit codes of `lockfs tower check`: the first two are those of section 6.2.
const (
	exitStale = iota
	exitActive
	exitFree
	exitInvalid
)

const exitHelp = `Exit codes:
  0    done
  75   not acquired: somebody has the lock
  76   not acquired within --wait
  124  lost: the request does not have the lock, or no longer
  125  anything else, such as a wrong flag or a directory that cannot be written`
