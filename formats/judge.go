package formats

import (
	"fmt"
	"time"

	"lockfs/formats/beads"
	"lockfs/formats/forrst"
	"lockfs/formats/internal/stamp"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// Judge says whether a content is a stale lock at now, in cluster time. A lock that lives as long as a
// process, a malformed one, and a content that is not of the format which the rule forces, are held.
func Judge(content []byte, now time.Time, written Origin, rule Rule) Verdict {
	there := now.Add(written.ClockOffset)
	switch formatOf(content, rule) {
	case Tower:
		return tower.Judge(content, there, rule)
	case Semaphore:
		return semaphore.Judge(content, there, rule)
	case Swarm:
		return swarm.Judge(content, there, rule)
	case Beads:
		return beads.Judge(content, there, rule)
	case PID:
		return pid.Judge(content, there, rule)
	case Forrst:
		return forrst.Judge(content, there, rule)
	}
	return judgeNone(now, written, rule)
}

func formatOf(content []byte, rule Rule) Format {
	if rule.Format != "" {
		return rule.Format
	}
	return Detect(content)
}

// judgeNone judges a content of no format by the file's age, if the rule says after how long.
func judgeNone(now time.Time, written Origin, rule Rule) Verdict {
	if rule.StaleAfter == 0 || written.Mtime.IsZero() {
		return Verdict{State: Held, Reason: "of no known format, so time does not make it stale"}
	}
	v := Verdict{
		State: Held,
		Reason: fmt.Sprintf("last changed %s, stale after %s",
			stamp.Ago(now.Sub(written.Mtime)), stamp.Seconds(rule.StaleAfter)),
	}
	if now.After(written.Mtime.Add(rule.StaleAfter)) {
		v.State = Stale
	}
	return v
}

// FactsOf gives the facts of a content. Facts.StaleAt agrees with Judge at every time. A content that is
// not of the format which the rule forces has the facts of None, and is never stale.
func FactsOf(content []byte, written Origin, rule Rule) Facts {
	format := formatOf(content, rule)
	facts, err := factsOf(format, content, written, rule)
	if err != nil {
		rule.StaleAfter = 0 // was meant for the format that this is not
		return factsOfNone(written, rule)
	}
	return facts
}

func factsOf(format Format, content []byte, written Origin, rule Rule) (Facts, error) {
	switch format {
	case Tower:
		return tower.FactsOf(content, written, rule)
	case Semaphore:
		return semaphore.FactsOf(content, written, rule)
	case Swarm:
		return swarm.FactsOf(content, written, rule)
	case Beads:
		return beads.FactsOf(content, written, rule)
	case PID:
		return pid.FactsOf(content, written, rule)
	case Forrst:
		return forrst.FactsOf(content, written, rule)
	}
	return factsOfNone(written, rule), nil
}

func factsOfNone(written Origin, rule Rule) Facts {
	facts := Facts{Format: None, Host: written.Host, Guard: GuardAnyone, OnStale: Keep}
	if rule.StaleAfter != 0 && !written.Mtime.IsZero() {
		written.ClockOffset = 0 // the mtime is in cluster time already
		facts.ExpiresAt = written.Deadline(written.Mtime.Add(rule.StaleAfter))
	}
	return rule.Override(facts)
}
