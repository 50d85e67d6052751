//go:build faults

package fault

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var chosen = os.Getenv("LOCKFS_TEST_FAULT")

// Whether a mistake is made.
var (
	NoDedup         = chosen == "no-dedup"
	IgnoreCancel    = chosen == "ignore-cancel"
	UnverifiedReads = chosen == "unverified-reads"
	LateKeepalives  = chosen == "late-keepalives"
	IgnoreLooks     = chosen == "ignore-looks"
	LookAtData      = chosen == "look-at-data"
	AnyNumber       = chosen == "any-number"
	GuardLocked     = chosen == "guard-locked"
	FlipBit         = chosen == "flip-bit"

	AnyTerm         = chosen == "any-term"
	OldSilence      = chosen == "old-silence"
	EndActive       = chosen == "end-active"
	RebornSession   = chosen == "reborn-session"
	NoLockDelay     = chosen == "no-lock-delay"
	UndoOthers      = chosen == "undo-others"
	StaleEarly      = chosen == "stale-early"
	LeaderClock     = chosen == "leader-clock"
	DeafHeartbeat   = chosen == "deaf-heartbeat"
	MissedEnd       = chosen == "missed-end"
	RenameOver      = chosen == "rename-over"
	TruncateUnseen  = chosen == "truncate-unseen"
	QueueJump       = chosen == "queue-jump"
	ServeGone       = chosen == "serve-gone"
	ForgetReplies   = chosen == "forget-replies"
	ReuseInodes     = chosen == "reuse-inodes"
	BelieveTorn     = chosen == "believe-torn"
	TermBeforeLog   = chosen == "term-before-log"
	EarlyVote       = chosen == "early-vote"
	RemovedVote     = chosen == "removed-vote"
	ForgetPending   = chosen == "forget-pending"
	RetakeNumbers   = chosen == "retake-numbers"
	ProposeEarly    = chosen == "propose-early"
	HostFromMessage = chosen == "host-from-message"
	AdmitRevoked    = chosen == "admit-revoked"
	MountMayAll     = chosen == "mount-may-all"

	AnswerBeforeRevocation = chosen == "answer-before-revocation"
	ShowBeforeRevocation   = chosen == "show-before-revocation"
	NoLeaseWait            = chosen == "no-lease-wait"
	ForgetWords            = chosen == "forget-words"
	StoreSilently          = chosen == "store-silently"
	LeaseFromAnswer        = chosen == "lease-from-answer"
	KeepOverTicks          = chosen == "keep-over-ticks"
	KeepAbsent             = chosen == "keep-absent"

	// EagerLeases has everything be leased that can be, also what has just changed or was asked for once.
	EagerLeases = os.Getenv("LOCKFS_TEST_EAGER_LEASES") == "1"
)

// CacheTime is how long the kernel may keep what it is told.
var CacheTime = func() time.Duration {
	if chosen == "stale-cache" {
		return 10 * time.Second
	}
	return 0
}()

// ClockOffset is by how much this program's wall clock is ahead of the host's, now.
func ClockOffset() time.Duration {
	if clockFile == "" {
		return clockOffset
	}
	text, err := os.ReadFile(clockFile)
	if err != nil {
		return 0
	}
	offset, err := time.ParseDuration(string(bytes.TrimSpace(text)))
	if err != nil {
		panic(err)
	}
	return offset
}

var (
	clockFile   = os.Getenv("LOCKFS_TEST_CLOCK_FILE")
	clockOffset = durationOf("LOCKFS_TEST_CLOCK_OFFSET")
)

// clockRate is how many seconds the clocks of this program that nobody sets go on in a second, since a moment on CLOCK_BOOTTIME.
var clockRate, rateSince = rateOf("LOCKFS_TEST_CLOCK_RATE")

func rateOf(variable string) (rate float64, since time.Duration) {
	text := os.Getenv(variable)
	if text == "" {
		return 1, 0
	}
	if _, err := fmt.Sscanf(text, "%g@%d", &rate, &since); err != nil {
		panic(err)
	}
	return rate, since
}

// Drift is what a clock shows that has gone wrong for so long.
func Drift(since time.Duration) time.Duration { return time.Duration(clockRate * float64(since)) }

// BootTime is CLOCK_BOOTTIME by such a clock; nil: it goes right.
func BootTime() func() time.Duration {
	if clockRate == 1 {
		return nil
	}
	return func() time.Duration {
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // cannot fail for this clock
		return rateSince + Drift(time.Duration(now.Nano())-rateSince)
	}
}

// CertificateValidity is how long the certificates are valid that this program gives; 0: as long as they are to be.
var CertificateValidity = durationOf("LOCKFS_TEST_CERTIFICATE_VALIDITY")

func durationOf(variable string) time.Duration {
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return duration
}

// CompareInterval is how often voters compare their states.
func CompareInterval(usual time.Duration) time.Duration {
	if interval, err := time.ParseDuration(os.Getenv("LOCKFS_TEST_COMPARE_INTERVAL")); err == nil {
		return interval
	}
	return usual
}

// ApplyTime is the time of a command: that with which it was stamped, unless the mistake is made.
func ApplyTime(stamp int64) int64 {
	if chosen == "apply-clock" {
		return time.Now().UnixNano()
	}
	return stamp
}

// LoseAnswer waits until nobody waits any more for the answer to a creation, if it is one that gets lost.
func LoseAnswer(ctx context.Context, name []byte) error {
	if chosen != "lose-answers" || !bytes.HasPrefix(name, []byte("untold")) {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// DieAnswering kills this process when a creation's result is on its way to the kernel.
func DieAnswering() { dieAt("die-answering") }

// DieAsked kills this process when the kernel has been told of a creation, and asks for its attributes.
func DieAsked() { dieAt("die-asked") }

func dieAt(moment string) {
	if chosen == moment {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
