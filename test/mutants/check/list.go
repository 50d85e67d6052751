package main

// mistake is a patch of test/mutants/faults, with the tests to find it.
type mistake struct {
	name, kind string
	seenBy     []tests // in order of cost
}

// tests are tests of a package. At least one fails with the mistake, and none without it.
type tests struct {
	folder string
	names  []string
	// onHosts marks one test running the changed program on hosts itself. It passes if it finds the
	// mistake.
	onHosts bool
}

// Subjects of mistakes.
const (
	guards      = "guards"
	determinism = "determinism"
	expiry      = "expiry"
	leases      = "leases"
	membership  = "membership"
	queues      = "queues"
	reads       = "read confirmation"
	sessions    = "sessions"
	snapshots   = "snapshot"
	tlsIdentity = "TLS identity"
	tornWrites  = "torn writes"
	undo        = "undo"
	upgrades    = "upgrade"
	watching    = "watch"
)

func in(folder string, names ...string) tests { return tests{folder: folder, names: names} }

func namespace(names ...string) tests { return in("raftstore/namespace", names...) }

func cluster(names ...string) tests { return in("cluster", names...) }

func onHosts(name string) tests {
	return tests{folder: "test/faults", names: []string{name}, onHosts: true}
}

// all are in the order of the table.
var all = []mistake{
	{"unverified-reads", reads, []tests{cluster("TestAnyStateThatIsNewEnough")}},
	{"any-term", reads, []tests{cluster("TestReportsThatCount")}},

	{"stale-cache", leases, []tests{in("fusefs/fuseattr", "TestTheKernelKeepsNothing")}},
	{"answer-before-revocation", leases, []tests{cluster("TestAChangeWaitsForAMountThatDoesNotAnswer", "TestChangesAreSeenByThoseWhoHoldLeases")}},
	{"show-before-revocation", leases, []tests{cluster("TestAChangeWaitsForAMountThatDoesNotAnswer", "TestChangesAreSeenByThoseWhoHoldLeases")}},
	{"no-lease-wait", leases, []tests{cluster("TestANewLeaderWaitsForLeases")}},
	{"forget-words", leases, []tests{cluster("TestReportsOfTheSameTermDoNotCount", "TestLeasesAreOverAfterTheLastReport")}},
	{"store-silently", leases, []tests{cluster("TestStoringEntriesReportsTheTerm", "TestACommandIsAReportOfAQuorum", "TestALeaderBeginsWhenAllLeasesOfOthersAreOver")}},
	{"lease-from-answer", leases, []tests{onHosts("TestLeaseMistakesAreSeen/lease-from-answer")}},
	{"keep-over-ticks", leases, []tests{namespace("TestTouchedAreAllThatQueriesShow")}},
	{"keep-absent", leases, []tests{namespace("TestTouchedAreAllThatQueriesShow")}},

	{"no-dedup", sessions, []tests{namespace("TestRetryGetsTheFirstReply")}},
	{"reborn-session", sessions, []tests{namespace("TestEndedSession")}},
	{"late-keepalives", sessions, []tests{cluster("TestSessionsExpireOnlyAfterAFullTTL")}},
	{"old-silence", sessions, []tests{cluster("TestANewLeaderGivesFullTTLs")}},
	{"end-active", sessions, []tests{namespace("TestEndedSession")}},
	{"no-lock-delay", sessions, []tests{namespace("TestLockDelay", "TestSuccessor")}},

	{"ignore-cancel", undo, []tests{namespace("TestCancelUndoes")}},
	{"undo-others", undo, []tests{namespace("TestCancelKeeps")}},

	{"stale-early", expiry, []tests{namespace("TestStaleStrictlyAfterItsTime")}},
	{"leader-clock", expiry, []tests{cluster("TestClockOneWrongAmongThreeMovesNothing")}},
	{"deaf-heartbeat", expiry, []tests{namespace("TestRenewedLockIsHeldAgain")}},

	{"apply-clock", determinism, []tests{namespace("TestStaleStrictlyAfterItsTime", "TestLockDelay")}},

	{"flip-bit", determinism, []tests{onHosts("TestFlippedBitIsFound")}},

	{"missed-end", watching, []tests{in("raftstore", "TestAwaitLockMissesNothing")}},

	{"ignore-looks", guards, []tests{namespace("TestLooks")}},
	{"look-at-data", guards, []tests{namespace("TestWhatIsALock")}},
	{"any-number", guards, []tests{in("cluster/session", "TestANumberIsNoPIDOfStrangers")}},
	{"guard-locked", guards, []tests{namespace("TestKernelLockIsTheOnlyGuardOfItsFile")}},
	{"rename-over", guards, []tests{namespace("TestHostGuard")}},
	{"truncate-unseen", guards, []tests{namespace("TestLooks")}},

	{"queue-jump", queues, []tests{namespace("TestFirstComesFirst")}},
	{"serve-gone", queues, []tests{namespace("TestLockDelay", "TestSuccessor")}},

	{"forget-replies", snapshots, []tests{namespace("TestRetryGetsTheFirstReply", "TestSnapshotIsWrittenWhileApplyGoesOn")}},
	{"reuse-inodes", snapshots, []tests{namespace("TestLocksOfRemovedFile")}},

	{"believe-torn", tornWrites, []tests{in("cluster/consensus/wal", "TestTornWrites")}},
	{"term-before-log", tornWrites, []tests{in("cluster/consensus", "TestEarlyEntries")}},

	{"early-vote", membership, []tests{cluster("TestProbationLimits")}},
	{"removed-vote", membership, []tests{cluster("TestALeaderThatRemovesItselfIsNotConfirmed")}},

	{"forget-pending", upgrades, []tests{in("cluster/session", "TestClientTakesOverAndCancels")}},
	{"retake-numbers", upgrades, []tests{in("cluster/session", "TestAJournalThatIsBehind")}},
	{"propose-early", upgrades, []tests{in("raftstore/codec", "TestNothingIsProposedBeforeItsVersion")}},

	{"host-from-message", tlsIdentity, []tests{cluster("TestACommandCarriesItsCallersHost")}},
	{"admit-revoked", tlsIdentity, []tests{cluster("TestARevokedHostIsNotAdmitted")}},
	{"mount-may-all", tlsIdentity, []tests{cluster("TestEachRoleHasThePermissionsOfItsRows")}},
}
