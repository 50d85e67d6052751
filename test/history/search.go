package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Errors of a check.
var (
	ErrImpossible = errors.New("there is no order in which these calls can have happened")
	ErrUndecided  = errors.New("not decided in time")
)

// never is the end of an operation without a known end: later than any other.
const never = math.MaxInt64

// search looks with porcupine for an order of overlapping operations. Without one, it returns an
// error with the longest order found. within limits the search. Inputs of operations are distinct pointers to
// printable values.
func search(rules porcupine.Model, operations []porcupine.Operation, within time.Duration) error {
	result := porcupine.CheckOperationsTimeout(rules, operations, within)
	if result == porcupine.Ok {
		return nil
	}
	cause := ErrImpossible
	if result == porcupine.Unknown {
		cause = ErrUndecided
	}
	return fmt.Errorf("%w:\n%s", cause, describeOrder(operations, longestOrder(rules, operations, within)))
}

// longestOrder returns the longest order found for some of the operations.
func longestOrder(rules porcupine.Model, operations []porcupine.Operation, within time.Duration) (order []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(rules, operations, within)
	for _, partition := range info.PartialLinearizationsOperations() {
		var longest []porcupine.Operation
		for _, found := range partition {
			if len(found) > len(longest) {
				longest = found
			}
		}
		order = append(order, longest...)
	}
	return order
}

// describeOrder lists the calls in order of their begin, with their places in the longest order found. For a
// long history it lists only the part around the first call outside of this order.
func describeOrder(operations, longest []porcupine.Operation) string {
	const before, after = 300, 30 // its cause may lie long before
	place := make(map[any]int)
	for i, operation := range longest {
		place[operation.Input] = i + 1
	}
	sorted := slices.Clone(operations)
	slices.SortStableFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	stuck := -1
	for i, o := range sorted {
		if place[o.Input] == 0 && (stuck < 0 || o.Return < sorted[stuck].Return) {
			stuck = i
		}
	}
	var b strings.Builder
	for i, operation := range sorted {
		if operation.Return != never && (i < stuck-before || i > stuck+after) {
			continue
		}
		at := "    -"
		if n := place[operation.Input]; n != 0 {
			at = fmt.Sprintf("%5d", n)
		}
		end := "      later"
		if operation.Return != never {
			end = fmt.Sprintf("%11.6f", float64(operation.Return-sorted[0].Call)/1e9)
		}
		fmt.Fprintf(&b, "%s %11.6f %s %v\n", at, float64(operation.Call-sorted[0].Call)/1e9, end, operation.Input)
	}
	return b.String()
}
