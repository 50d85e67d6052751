package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func markdown(text string) source {
	return source{"x.md", prose("x.md", 1, text, true), longLines("x.md", text)}
}

func TestFaultsHavePlaceAndRule(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", mostWords+1))
	for text, want := range map[string]string{
		"# Title\n\nOne line.\n\n" + long + ".\n": "x.md:5: sentence of 31 words, at most 30",
		"It goes.\nThe file is\nof somebody.":     "x.md:3: say which program, host or call: somebody",
		"The one who waits for whom.":             "x.md:1: 2 times who, what, whom, whose in 6 words, at most 3 in 1,000",
		"That that, that, that.":                  `x.md:1: 4 times "that" in 4 words, at most 12 in 1,000`,
		"a\n\n" + strings.Repeat("long ", 23):     "x.md:3: line of more than 110 characters",
	} {
		faults := markdown(text).faults()
		require.NotEmpty(t, faults, text)
		require.Contains(t, faults[0], want)
	}
}

func TestTextsWithoutFaults(t *testing.T) {
	for _, text := range []string{
		"The leader answers.",
		"The program that waits, and the one whose lock it is.", // rates do not count in short texts
		"    who what whom whose somebody " + strings.Repeat("code ", 40) + "\n",
		"```\nwho what whom whose somebody\n```\n",
		"| who | what | whom | somebody |\n",
		"Use `who what whom whose somebody` for it.",
		"See [this](https://example.org/who/what/whom/whose/somebody).",
		strings.Repeat("word ", 20) + ":\n" + strings.Repeat("word ", 20) + ".",
		"- " + strings.Repeat("word ", 20) + "\n- " + strings.Repeat("word ", 20),
	} {
		require.Empty(t, markdown(text).faults(), text)
	}
}

func TestExemptTextsHaveFaults(t *testing.T) {
	good, bad := markdown("The leader answers."), markdown("Somebody answers.")
	good.name, bad.name = "good", "bad"
	faults, _ := check([]source{good, bad}, nil)
	require.Len(t, faults, 1)
	faults, forgiven := check([]source{good, bad}, []string{"bad"})
	require.Empty(t, faults)
	require.Len(t, forgiven, 1)
	faults, _ = check([]source{good, bad}, []string{"good", "bad", "gone"})
	require.Equal(t, []string{
		"good: it passes: remove it from test/prose/exempt.txt", "gone: it does not exist: remove it from test/prose/exempt.txt",
	}, faults)
}

func TestManPages(t *testing.T) {
	page := ".TH X\n.SH DESCRIPTION\n.PP\nA `\\-\\-flag\\(aqs\\(aq`\n.PP\n.RS 4\n.nf\ncode who\n.fi\n.RE\n.TP\n\\fB\\-\\-dir\\fR \\fIDIR\\fR\nThe directory.\n"
	var texts []string
	for _, p := range prose("help of x", 0, unroff(page), false) {
		texts = append(texts, p.text)
		require.Equal(t, "help of x", p.at(0).String())
	}
	require.Equal(t, []string{"A X", "--dir DIR\nThe directory."}, texts)
}

func TestDocComments(t *testing.T) {
	s := source{}
	require.NoError(t, s.addComments("main.go"))
	require.Contains(t, s.paragraphs[0].text, "Command prose checks")
	require.Equal(t, "main.go:1", s.paragraphs[0].at(0).String())
}
