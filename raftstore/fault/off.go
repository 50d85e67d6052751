//go:build !faults

package fault

import (
	"context"
	"time"
)

// None of the mistakes is made.
const (
	NoDedup         = false
	IgnoreCancel    = false
	UnverifiedReads = false
	LateKeepalives  = false
	IgnoreLooks     = false
	LookAtData      = false
	AnyNumber       = false
	GuardLocked     = false
	FlipBit         = false

	AnyTerm         = false
	OldSilence      = false
	EndActive       = false
	RebornSession   = false
	NoLockDelay     = false
	UndoOthers      = false
	StaleEarly      = false
	LeaderClock     = false
	DeafHeartbeat   = false
	MissedEnd       = false
	RenameOver      = false
	TruncateUnseen  = false
	QueueJump       = false
	ServeGone       = false
	ForgetReplies   = false
	ReuseInodes     = false
	BelieveTorn     = false
	TermBeforeLog   = false
	EarlyVote       = false
	RemovedVote     = false
	ForgetPending   = false
	RetakeNumbers   = false
	ProposeEarly    = false
	HostFromMessage = false
	AdmitRevoked    = false
	MountMayAll     = false

	AnswerBeforeRevocation = false
	ShowBeforeRevocation   = false
	NoLeaseWait            = false
	ForgetWords            = false
	StoreSilently          = false
	LeaseFromAnswer        = false
	KeepOverTicks          = false
	KeepAbsent             = false

	// EagerLeases has everything be leased that can be, also what has just changed or was asked for once.
	EagerLeases = false

	// CacheTime is how long the kernel may keep what it is told.
	CacheTime = time.Duration(0)

	// CertificateValidity is how long the certificates are valid that this program gives; 0: as long as they are to be.
	CertificateValidity = time.Duration(0)
)

// ClockOffset is by how much this program's wall clock is ahead of the host's.
func ClockOffset() time.Duration { return 0 }

// Drift is what a clock shows that nobody sets, after so long.
func Drift(since time.Duration) time.Duration { return since }

// BootTime is CLOCK_BOOTTIME by a clock that goes wrong; nil: there is none.
func BootTime() func() time.Duration { return nil }

// CompareInterval is how often voters compare their states.
func CompareInterval(usual time.Duration) time.Duration { return usual }

// ApplyTime is the time of a command: that with which it was stamped.
func ApplyTime(stamp int64) int64 { return stamp }

// LoseAnswer does nothing.
func LoseAnswer(context.Context, []byte) error { return nil }

// DieAnswering does nothing.
func DieAnswering() {}

// DieAsked does nothing.
func DieAsked() {}
