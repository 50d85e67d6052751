package faultinjection

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Size is what a schedule follows from.
type Size struct {
	Seed   uint64
	Length time.Duration
	AtOnce int           // strikes at a time
	Term   time.Duration // of sessions: most strikes last about as long
	Only   []string      // kinds that are drawn; nil: all
}

// A Strike is one harm.
type Strike struct {
	Number int
	Kind   string
	At     time.Duration // after the beginning
	For    time.Duration
	Pick   uint64  // whom, of those of the kind's role who are free
	Amount float64 // from 0 to 1: how much, where there is a how much
}

func (s Strike) String() string {
	return fmt.Sprintf("%3d %6.1fs %5.1fs %s", s.Number, s.At.Seconds(), s.For.Seconds(), s.Kind)
}

// Schedule is the strikes in the order in which they begin; all have ended when it is over. Each kind comes as often as the others,
// but for the last round.
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
	free := make([]time.Duration, size.AtOnce) // when each lane has ended its last strike
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
