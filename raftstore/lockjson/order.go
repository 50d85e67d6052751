package lockjson

import (
	"cmp"
	"strings"
)

// ComparePaths compares paths and names in natural order: job-2 comes before job-10, and a directory before
// names which only begin like it.
func ComparePaths(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		switch {
		case isDigit(x[0]) && isDigit(y[0]):
			var n, m string
			n, x = cutNumber(x)
			m, y = cutNumber(y)
			if c := cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(n, m)); c != 0 {
				return c
			}
		case x[0] != y[0]:
			return cmp.Or(compareFalse(x[0] == '/', y[0] == '/'), cmp.Compare(x[0], y[0]))
		default:
			x, y = x[1:], y[1:]
		}
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// cutNumber returns the digits at the begin of a text, without leading zeros, and the rest.
func cutNumber(text string) (number, rest string) {
	rest = strings.TrimLeft(text, "0123456789")
	return strings.TrimLeft(text[:len(text)-len(rest)], "0"), rest
}

// compareFalse puts true before false.
func compareFalse(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
