package recipes

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/test/hosts"
)

// TestRecording types the first example of the README on hosts, and keeps the terminal as run.svg, an artefact of the test
// (test/run pictures).
func TestRecording(t *testing.T) {
	t.Parallel()
	all, dir := newHosts(t)
	s := &scene{t: t, dir: dir, all: all}
	for _, h := range all {
		h.scene = s
	}
	s.programs(map[string]string{"deploy": `echo "deploying $1 on $(hostname)"; ` + busy})
	a, b, c := all[0], all[1], all[2]
	const command = "lockfs run --format pid /locks/deploy.lock deploy "
	r := &recording{}

	r.typed("a", command+"v1")
	first := a.start("exec " + command + "v1")
	require.NoError(t, first.WaitOutput("deploying v1 on a\n"))
	r.printed(first.Log())

	r.typed("b", command+"v2")
	second := b.start("exec " + command + "v2")
	require.NoError(t, second.WaitOutput("lockfs rm --force"))
	r.printed(second.Log())

	const why = "lockfs why /locks/deploy.lock | head -n 4"
	r.typed("c", why)
	r.printed(c.must(why))

	r.typed("a", "kill -9 %1    # the deployment on a is killed: the lock is free")
	first.Kill()
	before := len(second.Log())
	require.NoError(t, second.WaitOutput("deploying v2 on b\n"))
	r.printed(second.Log()[before:])
	s.enough()
	require.NoError(t, second.Wait(), second.Log())
	hosts.Eventually(t, "the release", func() (string, bool) {
		out, err := c.run("ls /locks/deploy.lock")
		return out, err != nil
	})
	require.NoError(t, os.WriteFile(filepath.Join(t.ArtifactDir(), "run.svg"), []byte(r.svg()), 0o644))
}

// recording is a terminal session on several hosts.
type recording struct {
	lines []recordedLine
	now   float64 // seconds since the beginning
}

type recordedLine struct {
	prompt, text string
	at           float64
}

const (
	columns    = 96
	pause      = 1.2 // seconds before a command, and after it
	lineHeight = 20
	width      = 810 // of the columns, in the font of the drawing
	margin     = 16
)

func (r *recording) typed(host, command string) {
	r.now += pause
	r.lines = append(r.lines, recordedLine{host + "$ ", command, r.now})
	r.now += pause
}

func (r *recording) printed(output string) {
	for line := range strings.Lines(output) {
		for _, part := range wrapped(strings.TrimRight(line, "\n")) {
			r.lines = append(r.lines, recordedLine{text: part, at: r.now})
		}
	}
}

// wrapped breaks a line as a terminal of 96 columns does, but at blanks.
func wrapped(line string) (parts []string) {
	for len(line) > columns {
		at := strings.LastIndexByte(line[:columns], ' ')
		if at <= 0 {
			at = columns
		}
		parts, line = append(parts, line[:at]), "    "+strings.TrimLeft(line[at:], " ")
	}
	return append(parts, line)
}

// svg draws the lines, each of which appears at its time. Viewers without animation show all of them.
func (r *recording) svg() string {
	var b strings.Builder
	height := 2*margin + len(r.lines)*lineHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img">
<title>lockfs run on two hosts: the second waits until the first is killed</title>
<style>
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre }
.prompt { fill: #7ec699; font-weight: bold }
.command { fill: #ffffff }
@media (prefers-reduced-motion: no-preference) { g { animation: appear 0.1s both } }
@keyframes appear { from { opacity: 0 } to { opacity: 1 } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#1d2027"/>
`, 2*margin+width, height)
	for i, line := range r.lines {
		y := margin + i*lineHeight + 14
		fmt.Fprintf(&b, `<g style="animation-delay: %.1fs"><text x="%d" y="%d" xml:space="preserve">`, line.at, margin, y)
		if line.prompt != "" {
			fmt.Fprintf(&b, `<tspan class="prompt">%s</tspan><tspan class="command">%s</tspan>`, line.prompt, html.EscapeString(line.text))
		} else {
			b.WriteString(html.EscapeString(line.text))
		}
		b.WriteString("</text></g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
