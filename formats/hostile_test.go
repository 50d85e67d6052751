package formats_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats"
)

// hostile gives contents of about n bytes that a careless parser takes long over or falls for.
func hostile(n int) map[string][]byte {
	fill := func(head, unit, tail string) []byte {
		return []byte(head + strings.Repeat(unit, (n-len(head)-len(tail))/len(unit)) + tail)
	}
	half := n / 2
	head := towerLock[:len(towerLock)-1] + `,"x":`
	return map[string][]byte{
		"zeros":           fill("", "\x00", ""),
		"blanks":          fill("", " \n", "7"),
		"digits":          fill("", "9", ""),
		"leading zeros":   fill("", "0", "7"),
		"invalid UTF-8":   fill("{", "\xff", "}"),
		"open braces":     fill("", "{", ""),
		"open members":    fill("", `{"a":`, ""),
		"open arrays":     fill(head, "[", "}"),
		"deep arrays":     []byte(head + strings.Repeat("[", half) + strings.Repeat("]", half) + "}"),
		"deep enough":     []byte(head + strings.Repeat("[", min(half, 9000)) + strings.Repeat("]", min(half, 9000)) + "}"),
		"many values":     fill(head+"[", "1,", "1]}"),
		"many objects":    fill(head+"[", `{"a":{}},`, "1]}"),
		"many members":    members(n),
		"same member":     fill("{", `"a":1,`, `"a":1}`),
		"long string":     fill(head+`"`, "x", `"}`),
		"escaped string":  fill(head+`"`, `\u0000`, `"}`),
		"open string":     fill(head+`"`, `\"`, ""),
		"long name":       fill(`{"lock_version":"v1","`, "x", `":1}`),
		"huge number":     fill(head, "9", "}"),
		"huge ttl":        fill(`{"lock_version":"v1","ttl_seconds":1`, "0", "}"),
		"huge exponent":   fill(head+"1e", "9", "}"),
		"long holder":     fill(strings.TrimSuffix(beadsLock, "}")+`,"note":"`, `\\`, `"}`),
		"worker":          fill(`{"task_id":"t","acquired_at":"2025-02-02T10:00:00Z","worker":"`, "w", `"}`),
		"equals signs":    fill("pid=1\ntimestamp=1703520000\n", "=", "\n"),
		"empty lines":     fill("pid=1\ntimestamp=1703520000\n", "\r\n", ""),
		"unknown fields":  fill("pid=1\ntimestamp=1703520000\n", "a=\n", ""),
		"long tag":        fill("pid=1\ntimestamp=1703520000\ntag=", "t", "\n"),
		"long timestamp":  fill("pid=1\ntimestamp=", "1", "\n"),
		"carriage return": fill("pid=1\ntimestamp=1703520000", "\r", "\n"),
	}
}

func members(n int) []byte {
	var b bytes.Buffer
	b.WriteString(strings.TrimSuffix(swarmLock, "}"))
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	b.WriteString("}")
	return b.Bytes()
}

// maxContent is the size of the largest file that lockfs holds.
const maxContent = 256 << 10

func TestHostileContents(t *testing.T) {
	want := map[string]formats.Format{ // what is hostile and yet a lock
		"blanks":         formats.PID,
		"deep enough":    formats.Tower,
		"many values":    formats.Tower,
		"many objects":   formats.Tower,
		"many members":   formats.Swarm,
		"long string":    formats.Tower,
		"escaped string": formats.Tower,
		"huge number":    formats.Tower,
		"huge exponent":  formats.Tower,
		"long holder":    formats.Beads,
		"worker":         formats.Swarm,
		"empty lines":    formats.Semaphore,
		"unknown fields": formats.Semaphore,
		// What is hostile and says it is one.
		"huge ttl":        formats.Tower,
		"long name":       formats.Tower,
		"equals signs":    formats.Semaphore,
		"long timestamp":  formats.Semaphore,
		"carriage return": formats.Semaphore,
		"long tag":        formats.Semaphore,
	}
	for name, content := range hostile(maxContent) {
		t.Run(name, func(t *testing.T) {
			expected, ok := want[name]
			if !ok {
				expected = formats.None
			}
			require.Equal(t, expected, formats.Detect(content))
			facts := formats.FactsOf(content, formats.Origin{})
			require.LessOrEqual(t, len(facts.Holder), 255)
			require.LessOrEqual(t, len(facts.Invalid), 255)
			if expected == formats.None {
				require.Zero(t, facts.ExpiresAt)
			}
		})
	}
}

// The rates for 64 KiB and 256 KiB of the same content are alike, because Detect takes linear time.
func BenchmarkDetectHostile(b *testing.B) {
	for _, size := range []int{maxContent / 4, maxContent} {
		for name, content := range hostile(size) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				for b.Loop() {
					formats.Detect(content)
				}
			})
		}
	}
}

func BenchmarkFactsOf(b *testing.B) {
	for format, content := range locks {
		b.Run(format.String(), func(b *testing.B) {
			for b.Loop() {
				formats.FactsOf([]byte(content), formats.Origin{Host: "n1"})
			}
		})
	}
}
