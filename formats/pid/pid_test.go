package pid_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/lockfact"
	"lockfs/formats/pid"
	"lockfs/test/fuzzing"
)

func TestPIDFilesOfRealTools(t *testing.T) {
	for content, want := range map[string]int{
		"1234":               1234,
		"1234\n":             1234,
		"1234\r\n":           1234,
		"1234\x00":           1234, // shadow-utils
		"\x001234 \x00\n":    1234,
		"      1234\n":       1234, // lockfile-create, UUCP
		"\t1 \n\n":           1,
		"4194304\n":          4194304,
		" 1" + blanks(1<<16): 1,
	} {
		l, err := pid.Parse([]byte(content))
		require.NoError(t, err, content)
		require.Equal(t, want, l.PID)
	}
}

func blanks(n int) string { return strings.Repeat(" \n", n) }

func TestPIDIsNothingButADecimalNumberThatFits(t *testing.T) {
	for _, content := range []string{
		"", " ", "\n", "0", "00", "01234", "-1", "+1", "0x1f", "1.5", "1e3", "12 34", "1234\n5678\n",
		"1234 host\n", "pid=1234\n", "12\x0034", "\x00\x00\x00\x00", "\ufeff1234", "\v1234", "１２３４",
		"4194305", "1703520000", "99999999999999999999", "123456789012345678901234567890",
		strings.Repeat("9", 1<<18),
	} {
		_, err := pid.Parse([]byte(content))
		var fieldError *lockfact.FieldError
		require.ErrorAs(t, err, &fieldError, "%.40q", content)
		require.Equal(t, "pid", fieldError.Field)
	}
}

func TestPIDRenders(t *testing.T) {
	text, err := pid.New().Render()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d\n", os.Getpid()), string(text))
	_, err = (&pid.Lock{}).Render()
	require.EqualError(t, err, "pid: must be between 1 and 4194304")
}

func TestPIDFacts(t *testing.T) {
	facts, err := pid.FactsOf([]byte("1234\n"), lockfact.Origin{Host: "n1"})
	require.NoError(t, err)
	require.Equal(t, lockfact.Facts{
		Format:  lockfact.PID,
		Holder:  "1234",
		Host:    "n1",
		PID:     1234,
		Guard:   lockfact.GuardHost,
		OnStale: lockfact.Remove,
	}, facts)
	require.True(t, facts.ByProcess())
	_, err = pid.FactsOf(nil, lockfact.Origin{})
	require.Error(t, err)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1234\n", "      1234\n", "0", "99999999999999999999", "\r\n\t 7", "1 2"} {
		f.Add([]byte(seed))
	}
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		l, err := pid.Parse(content)
		if err != nil {
			return
		}
		text, err := l.Render()
		require.NoError(t, err)
		require.Equal(t, strings.Trim(string(content), " \t\r\n\x00")+"\n", string(text))
	})
}
