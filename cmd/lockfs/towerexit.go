package main

// Exit codes of `lockfs tower check`: the first two are those of section 6.2.
const (
	exitStale = iota
	exitActive
	exitFree
	exitInvalid
)

// Parts of the help texts.
const (
	exitHelpDone    = "Exit codes:\n  0    done\n"
	exitHelpBlocked = "  75   not acquired: somebody has the lock\n  76   not acquired within --wait\n"
	exitHelpLost    = "  124  lost: the request does not have the lock, or no longer\n"
	exitHelpFailed  = "  125  anything else, such as a wrong flag or a directory that cannot be written"

	acquireExitHelp = exitHelpDone + exitHelpBlocked + exitHelpFailed
	holdExitHelp    = exitHelpDone + exitHelpLost + exitHelpFailed
)
