// Package fuzzing runs the target of a fuzz test on many more inputs than go test -fuzz, which measures
// coverage after each input. It takes the inputs kept with the test and changes them at random in a few
// places, one after the other in one process. It does not look for new code; go test -fuzz does, and this
// package changes its finds.
package fuzzing

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Variable is the time for each kept input (a duration); without it, a test behaves like [testing.F.Fuzz].
const Variable = "LOCKFS_TEST_MUTATE"

// Run is [testing.F.Fuzz]. The target may take bytes, strings and truths.
func Run(f *testing.F, target any) {
	f.Helper()
	said := os.Getenv(Variable)
	if said == "" {
		f.Fuzz(target)
		return
	}
	term, err := time.ParseDuration(said)
	if err != nil {
		f.Fatalf("%s: %v", Variable, err)
	}
	m := &mutator{name: f.Name(), do: reflect.ValueOf(target), random: rand.New(rand.NewPCG(rand.Uint64(), 0))}
	f.Fuzz(reflect.MakeFunc(m.do.Type(), func(kept []reflect.Value) []reflect.Value {
		m.kept = append(m.kept, kept[1:])
		m.run(kept[0].Interface().(*testing.T), term)
		return nil
	}).Interface())
	fmt.Printf("mutated: %d inputs\n", m.done)
}

// mutator has the kept inputs of one test.
type mutator struct {
	name   string
	do     reflect.Value
	random *rand.Rand
	kept   [][]reflect.Value
	done   int
}

// run tries the last kept input and changes of it, until the time is over or a test fails.
func (m *mutator) run(t *testing.T, term time.Duration) {
	t.Helper()
	input := m.kept[len(m.kept)-1]
	for end := time.Now().Add(term); ; input = m.change(m.kept[len(m.kept)-1]) {
		sound := t.Run("", func(t *testing.T) {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("panic: %v", r)
					panic(fmt.Sprintf("%v with %s", r, m.keep(input)))
				}
			}()
			m.do.Call(append([]reflect.Value{reflect.ValueOf(t)}, input...))
		})
		m.done++
		if !sound {
			t.Fatalf("once more: go test -run '^%s$', with %s", m.name, m.keep(input))
		}
		if time.Now().After(end) {
			return
		}
	}
}

// change makes another input of one, of the same types.
func (m *mutator) change(of []reflect.Value) []reflect.Value {
	input := append([]reflect.Value(nil), of...)
	for changes := 1 + m.random.IntN(4); changes > 0; changes-- {
		i := m.random.IntN(len(input))
		other := m.kept[m.random.IntN(len(m.kept))][i]
		switch v := input[i].Interface().(type) {
		case []byte:
			input[i] = reflect.ValueOf(m.changed(v, other.Bytes()))
		case string:
			input[i] = reflect.ValueOf(string(m.changed([]byte(v), []byte(other.String()))))
		case bool:
			input[i] = reflect.ValueOf(!v)
		default:
			panic(fmt.Sprintf("%T cannot be changed", v))
		}
	}
	return input
}

// telling are bytes at which parsers decide.
const telling = "\x00\x01\x7f\x80\xff\n\r\t \"\\{}[]:,=-+.0123456789eE#/*'"

// changed does one thing to some bytes, and leaves them as they are.
func (m *mutator) changed(of, other []byte) []byte {
	at := func(b []byte) int { return m.random.IntN(len(b) + 1) }
	part := func(b []byte) (from, to int) {
		from = at(b)
		return from, from + m.random.IntN(min(len(b)-from, 32)+1)
	}
	replaced := func(from, to int, by ...byte) []byte {
		return append(append(append(make([]byte, 0, len(of)+len(by)), of[:from]...), by...), of[to:]...)
	}
	from, to := part(of)
	kind := m.random.IntN(8)
	if from == len(of) && kind < 3 {
		kind = 3 + kind // there is nothing to be changed
	}
	switch kind {
	case 0:
		return replaced(from, from+1, of[from]^1<<m.random.IntN(8))
	case 1:
		return replaced(from, from+1, byte(m.random.Uint32()))
	case 2:
		return replaced(from, from+1, telling[m.random.IntN(len(telling))])
	case 3:
		return replaced(from, from, telling[m.random.IntN(len(telling))])
	case 4:
		return replaced(from, to)
	case 5: // twice, or there as well
		at := at(of)
		return replaced(at, at, of[from:to]...)
	case 6:
		otherFrom, otherTo := part(other)
		return replaced(from, to, other[otherFrom:otherTo]...)
	}
	return replaced(from, len(of), other[at(other):]...)
}

// keep writes an input where go test finds it, and answers the file.
func (m *mutator) keep(input []reflect.Value) string {
	var text strings.Builder
	text.WriteString("go test fuzz v1\n")
	for _, v := range input {
		if v.Kind() == reflect.Slice {
			fmt.Fprintf(&text, "[]byte(%q)\n", v.Bytes())
		} else {
			fmt.Fprintf(&text, "%s(%#v)\n", v.Kind(), v.Interface())
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	path := filepath.Join("testdata", "fuzz", m.name, fmt.Sprintf("%x", sum[:8]))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err.Error() + ": " + text.String()
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return err.Error() + ": " + text.String()
	}
	return path
}
