package formats

import (
	"errors"
	"fmt"
	"time"

	"lockfs/formats/beads"
	"lockfs/formats/forrst"
	"lockfs/formats/internal/stamp"
	"lockfs/formats/lockfact"
	"lockfs/formats/pid"
	"lockfs/formats/semaphore"
	"lockfs/formats/swarm"
	"lockfs/formats/tower"
)

// Judge says whether a content is a stale lock at now, in cluster time. A lock that lives as long as a
// process, an invalid one, and a content that is not of the format which the rule forces, are held.
func Judge(content []byte, now time.Time, written Origin, rule Rule) Verdict {
	if rule.Format == Data {
		return Verdict{State: Held, Reason: "data by its rule, and no lock"}
	}
	format := Detect(content)
	if rule.Format == None {
		format = None
	}
	if rule.Format != "" && rule.Format != format {
		return judgeOther(content, format, written, rule)
	}
	there := now.Add(written.ClockOffset)
	switch format {
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

// judgeOther judges a content that is not of the format which the rule forces.
func judgeOther(content []byte, format Format, written Origin, rule Rule) Verdict {
	problem := fmt.Sprintf("it is a %s lock", format)
	if _, err := factsOf(rule.Format, content, written); err != nil && format == None {
		problem = err.Error()
	}
	return Verdict{State: Held, Reason: fmt.Sprintf("not the %s lock that the rule wants: %s", rule.Format, problem)}
}

// judgeNone judges a content of no format by the file's age, if the rule says after how long.
func judgeNone(now time.Time, written Origin, rule Rule) Verdict {
	mtime := mtimeOf(written)
	if rule.StaleAfter == 0 || mtime == 0 {
		return Verdict{State: Held, Reason: "of no known format, so time does not make it stale"}
	}
	changed := time.Unix(0, mtime)
	v := Verdict{
		State: Held,
		Reason: fmt.Sprintf("last changed %s, stale after %s",
			stamp.Ago(now.Sub(changed)), stamp.Seconds(rule.StaleAfter)),
	}
	if now.After(changed.Add(rule.StaleAfter)) {
		v.State = Stale
	}
	return v
}

// FactsOf gives the facts of a content. Facts.StaleAt agrees with Judge at every time. A content that is
// not of the format which the rule forces has the facts of None, and is never stale; nor is one that breaks a
// rule of its own format, of which Facts.Invalid says what is wrong. The facts under a
// rule are those without one, governed: see [Rule.Govern].
func FactsOf(content []byte, written Origin, rule Rule) Facts {
	format := Detect(content)
	facts, err := factsOf(format, content, written)
	switch {
	case format == None:
		facts = lockfact.NoneFacts(written.Host)
	case err != nil:
		facts = lockfact.InvalidFacts(format, err, guardOf(format), written.Host)
	}
	return rule.Govern(facts, mtimeOf(written))
}

// guardOf is what a valid lock of the format has.
func guardOf(format Format) Guard {
	switch format {
	case Swarm, None:
		return GuardAnyone
	case Forrst:
		return GuardOwner
	}
	return GuardHost
}

var errNone = errors.New("of no known format")

// factsOf gives the facts of a lock of this format without any rule; the error is that of its Parse.
func factsOf(format Format, content []byte, written Origin) (Facts, error) {
	switch format {
	case Tower:
		return tower.FactsOf(content, written, Rule{})
	case Semaphore:
		return semaphore.FactsOf(content, written, Rule{})
	case Swarm:
		return swarm.FactsOf(content, written, Rule{})
	case Beads:
		return beads.FactsOf(content, written, Rule{})
	case PID:
		return pid.FactsOf(content, written, Rule{})
	case Forrst:
		return forrst.FactsOf(content, written, Rule{})
	}
	return Facts{}, errNone
}

// mtimeOf is the file's mtime in nanoseconds of cluster time, 0 if it is not known.
func mtimeOf(written Origin) int64 {
	if written.Mtime.IsZero() {
		return 0
	}
	return Origin{}.ClusterTime(written.Mtime) // it is in cluster time already
}
