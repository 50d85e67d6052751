package faultinjection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Size determines a schedule.
type Size struct {
	Seed   uint64
	Length time.Duration
	AtOnce int           // strikes at a time
	Term   time.Duration // session TTL: most strikes last about as long
	Only   []string      // kinds to draw; nil: all
}

// A Strike is one fault.
type Strike struct {
	Number int
	Kind   string
	At     time.Duration // after the begin
	For    time.Duration
	Pick   uint64  // selects one of the free targets of the kind's role
	Amount float64 // strength from 0 to 1, for kinds with one
}

func (s Strike) String() string {
	return fmt.Sprintf("%3d %6.1fs %5.1fs %s", s.Number, s.At.Seconds(), s.For.Seconds(), s.Kind)
}

// Schedule returns the strikes in order of their begin; all have ended at the end of the schedule. All kinds
// are equally frequent, except in the last round.
func Schedule(size Size) (strikes []Strike) {
	random := rand.New(rand.NewPCG(size.Seed, 0))
	between := func(from, to float64) time.Duration {
		return time.Duration((from + (to-from)*random.Float64()) * float64(size.Term))
	}
	drawn := slices.Clone(kinds)
	if size.Only != nil {
		drawn = slices.DeleteFunc(drawn, func(k kind) bool { return !slices.Contains(size.Only, k.name) })
	}
	if len(drawn) == 0 {
		return nil
	}
	free := make([]time.Duration, size.AtOnce) // end of each lane's last strike
	for {
		for _, i := range random.Perm(len(drawn)) {
			lane := 0
			for other := range free {
				if free[other] < free[lane] {
					lane = other
				}
			}
			strike := Strike{
				Number: len(strikes) + 1, Kind: drawn[i].name, At: free[lane] + between(0.05, 0.5),
				For: between(drawn[i].from, drawn[i].to), Pick: random.Uint64(), Amount: random.Float64(),
			}
			if strike.At+strike.For > size.Length {
				return strikes
			}
			free[lane] = strike.At + strike.For
			strikes = append(strikes, strike)
		}
	}
}
