//go:build soak

package soakrecord

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/test/baddisk"
	"lockfs/test/faultinjection"
	"lockfs/test/history"
	"lockfs/test/load"
	"lockfs/test/testcluster"
)

// What test/soak hands on.
var (
	duration = flag.Duration("soak", time.Minute, "how long it lasts, at least; a piece is ended in any case")
	seed     = flag.Uint64("seed", rand.Uint64N(1e9), "of the first piece; each next one has the next")
	piece    = flag.Duration("piece", 45*time.Second, "for how long harm is done between two checks of all")
	servers  = flag.Int("servers", 5, "that have a vote; there is one more without")
	guests   = flag.Int("guests", 2, "that mount without being servers")
	atOnce   = flag.Int("at-once", 3, "faults at a time")
	clients  = flag.Int("clients", 1, "of a history, on each host")
	bundle   = flag.String("bundle", "", "directory for what a failure leaves; it is made")
	secure   = flag.Bool("secure", true, "hosts have certificates, which are renewed all the time")
	only     = flag.String("only", "", "regular expression for the kinds of faults to draw; empty: all")
	each     = flag.Bool("each", false, "tell of each fault as it comes")
)

// command does the piece of a seed again.
func command(seed uint64) string {
	text := fmt.Sprintf("test/soak 1s -seed %d", seed)
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "soak", "seed", "bundle":
		default:
			if !strings.HasPrefix(f.Name, "test.") {
				text += fmt.Sprintf(" -%s=%s", f.Name, quoted(f.Value.String()))
			}
		}
	})
	return text
}

// quoted returns a value as a word of a shell.
func quoted(value string) string {
	if value != "" && !strings.ContainsAny(value, " '\"|*?$\\()[]{}&;<>") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// kindsDrawn returns the kinds that -only names; nil: all.
func kindsDrawn(t testing.TB) (names []string) {
	t.Helper()
	if *only == "" {
		return nil
	}
	pattern, err := regexp.Compile(*only)
	require.NoError(t, err, "-only")
	for _, name := range faultinjection.Kinds() {
		if pattern.MatchString(name) {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names, "-only %s matches no kind of fault", *only)
	return names
}

// say prints what the one who asked for the soak is to see.
func say(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Println("soak: " + strings.TrimSuffix(line, "\n"))
	}
}

func TestMain(m *testing.M) {
	history.Main()
	baddisk.Main()
	load.Main()
	flag.Parse()
	if *bundle == "" {
		*bundle = fmt.Sprintf("%s/lockfs-soak-%d", os.TempDir(), *seed)
	}
	os.Exit(testcluster.Main(m))
}
