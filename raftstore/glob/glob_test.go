package glob

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"lockfs/test/fuzzing"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, fit, unfit string }{
		{"a.lock", "a.lock b/a.lock b/c/a.lock", "b.lock a.lock/b a.lockx"},
		{"/a.lock", "a.lock", "b/a.lock a.lock/b"},
		{"*.lock", ".lock a.lock b/a.lock ü/é.lock \xff.lock", "a.lock/b lock a.lockx"},
		{"/*.lock", "a.lock .lock", "b/a.lock"},
		{"jobs/*", "jobs/a", "jobs a/jobs/b jobs/a/b a"},
		{"/jobs/*", "jobs/a", "jobs a/jobs/b jobs/a/b a"},
		{"jobs/**", "jobs jobs/a jobs/a/b", "job jobs2/a a/jobs"},
		{"jobs/**/*.lock", "jobs/a.lock jobs/b/a.lock jobs/b/c/a.lock", "a.lock jobs/a b/jobs/a.lock jobs/a.lock/b"},
		{"**/a.lock", "a.lock b/a.lock b/c/a.lock", "ba.lock a.lock/b"},
		{"**/a/**/b/**", "a/b x/a/b a/x/b a/b/x x/a/y/b/z a/x/b/a/b/y", "a b b/a x/ab"},
		{"**", "a a/b a/b/c", ""},
		{"/**", "a a/b a/b/c", ""},
		{"a/**/**", "a a/b a/b/c", "b ab"},
		{"a**b", "ab axb x/ab", "a/b a ba"},
		{"/a**b", "ab axb", "a/b x/ab"},
		{"***", "a a/b", ""},
		{"?", "a é 引 \xff b/a", "ab aé \xff\xff é/ab"},
		{"*?", "a ab é", ""},
		{"*??", "ab aé éa", "a é 引 😀"},
		{"a?b", "a-b aéb", "ab a/b a--b"},
		{"[a-c]x", "ax bx b/cx", "dx x aax"},
		{"[^a-c]", "d é \xff", "a b c"},
		{"*[^é]", "a éa", "é aé"},
		{"[é-ü]", "é ü ö", "e \xc3"},
		{"[!a]", "! a", "b"},
		{"a[+-0]b/c", "a.b/c", "a/b/c a/b"},
		{`\*`, "* a/*", `a \* **`},
		{`\[a]`, "[a]", "a"},
		{`[\]\-\\]`, `] - \`, "a"},
		{`\a\é`, "aé", "a"},
		{"[[*?]", "[ * ?", "a [*?]"},
		{"{a,b}", "{a,b}", "a b"},
		{"\xff", "\xff", "\xfe \ufffd"},
		{"\ufffd", "\ufffd", "\xfe"},
		{"\xc3*", "\xc3 \xc3a", "é"},
		{".*", ".a .a.lock b/.a", "a"},
	} {
		require.Empty(t, Check(c.pattern), "%q", c.pattern)
		for _, path := range strings.Fields(c.fit) {
			require.True(t, Match(c.pattern, path), "%q should fit %q", path, c.pattern)
		}
		for _, path := range strings.Fields(c.unfit) {
			require.False(t, Match(c.pattern, path), "%q should not fit %q", path, c.pattern)
		}
	}
}

func TestWrongPatterns(t *testing.T) {
	for pattern, problem := range map[string]string{
		"":                               "is empty; write **",
		"/":                              "ends with a slash; write /**",
		"a/":                             "ends with a slash; write /**",
		"//":                             "ends with a slash; write /**",
		"//a":                            "two slashes in a row; write one",
		"a//b":                           "two slashes in a row; write one",
		".":                              `the element "."; write the path from the root`,
		"..":                             `the element ".."; write the path from the root`,
		"./a":                            `the element "."`,
		"/../a":                          `the element ".."`,
		"a/..":                           `the element ".."`,
		"**/./a":                         `the element "."`,
		"a\x00b":                         "NUL byte; leave it out",
		strings.Repeat("a", 4097):        "has 4097 bytes; write at most 4096",
		"a/[":                            `"[" in the pattern is not valid; close every [`,
		"[]":                             `"[]" in the pattern is not valid`,
		"[]a]":                           `"[]a]" in the pattern is not valid`,
		"[^]":                            `"[^]" in the pattern is not valid`,
		"[a-]":                           `"[a-]" in the pattern is not valid`,
		"[-a]":                           `"[-a]" in the pattern is not valid`,
		`[a\]`:                           `"[a\\]" in the pattern is not valid`,
		"[\xff]":                         `"[\xff]" in the pattern is not valid`,
		"[a/b]":                          `"[a" in the pattern is not valid`,
		`a\`:                             `"a\\" in the pattern is not valid`,
		`a\/b`:                           `"a\\" in the pattern is not valid`,
		"*a[":                            `"*a[" in the pattern is not valid`,
		"[" + strings.Repeat("a", 4000):  `aaa" in the pattern is not valid`,
		strings.Repeat("a/", 2047) + "[": `"[" in the pattern is not valid`,
	} {
		message := Check(pattern)
		require.Contains(t, message, problem, "%q", pattern)
		require.Less(t, len(message), 300)
		Match(pattern, "a/b") // does not matter, but must end
	}
	require.Empty(t, Check(strings.Repeat("a", 4096)))
}

// A whole pattern agrees with a matcher that tries everything, and is told what each part means instead
// of reading it.
func TestPatternsAgreeWithSlowMatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		elements := rapid.SliceOfN(rapid.Custom(drawElement), 1, 5).Draw(t, "pattern")
		path := rapid.SliceOfN(rapid.Custom(drawName), 1, 6).Draw(t, "path")
		fromRoot := len(elements) > 1 || rapid.Bool().Draw(t, "from the root")
		var texts []string
		for _, element := range elements {
			texts = append(texts, element.text())
		}
		pattern := strings.Join(texts, "/")
		if fromRoot && (len(elements) == 1 || rapid.Bool().Draw(t, "leading slash")) {
			pattern = "/" + pattern
		}
		want := false
		if fromRoot {
			want = slowElements(elements, path)
		} else {
			want = slowElement(elements[0], path[len(path)-1])
		}
		var names []string
		for _, name := range path {
			names = append(names, strings.Join(name, ""))
		}
		require.Empty(t, Check(pattern), "%q", pattern)
		require.Equal(t, want, Match(pattern, strings.Join(names, "/")), "%q of %q", names, pattern)
	})
}

// slowToken is a part of an element: what it looks like, and the characters that it stands for.
type slowToken struct {
	Text  string
	Star  bool
	Chars []string // of patternChars
}

type slowTokens []slowToken

func (tokens slowTokens) text() string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString(token.Text)
	}
	return b.String()
}

func slowElements(pattern []slowTokens, path [][]string) bool {
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0].text() == "**":
		for i := range len(path) + 1 {
			if slowElements(pattern[1:], path[i:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && slowElement(pattern[0], path[0]) && slowElements(pattern[1:], path[1:])
}

func slowElement(tokens slowTokens, name []string) bool {
	switch {
	case len(tokens) == 0:
		return len(name) == 0
	case tokens[0].Star:
		return slowElement(tokens[1:], name) || len(name) > 0 && slowElement(tokens, name[1:])
	}
	return len(name) > 0 && slices.Contains(tokens[0].Chars, name[0]) && slowElement(tokens[1:], name[1:])
}

// patternChars are in the order of their code points. The bytes that are no characters are separate, so
// that no two of them make one.
var patternChars = []string{"*", "-", "?", "[", `\`, "]", "^", "a", "b", "c", "é", "引", "😀", "\xff", "\xfe"}

const validChars = 13 // of them are UTF-8

func drawName(t *rapid.T) []string {
	few := rapid.SampledFrom([]string{"a", "b"})
	return rapid.SliceOfN(rapid.OneOf(few, rapid.SampledFrom(patternChars)), 1, 6).Draw(t, "name")
}

func drawElement(t *rapid.T) slowTokens {
	if rapid.IntRange(0, 3).Draw(t, "double star") == 0 {
		return slowTokens{{Text: "*", Star: true}, {Text: "*", Star: true}}
	}
	return rapid.SliceOfN(rapid.Custom(drawToken), 1, 5).Draw(t, "tokens")
}

func drawToken(t *rapid.T) slowToken {
	char := rapid.SampledFrom(patternChars).Draw(t, "character")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1:
		return slowToken{Text: "*", Star: true}
	case 2:
		return slowToken{Text: "?", Chars: patternChars}
	case 3:
		return drawClass(t)
	case 4:
		char = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of few")
	}
	if strings.Contains(`*?[\`, char) || rapid.Bool().Draw(t, "escape") {
		return slowToken{Text: `\` + char, Chars: []string{char}}
	}
	return slowToken{Text: char, Chars: []string{char}}
}

func drawClass(t *rapid.T) slowToken {
	text, in := "", map[string]bool{}
	invalid := false // path.Match takes invalid bytes for U+FFFD, which lies between the last two
	for range rapid.IntRange(1, 3).Draw(t, "ranges") {
		low := rapid.IntRange(0, validChars-1).Draw(t, "low")
		high := rapid.IntRange(low, validChars-1).Draw(t, "high")
		text += `\` + patternChars[low]
		if high > low || rapid.Bool().Draw(t, "range of one") {
			text += `-\` + patternChars[high]
		}
		invalid = invalid || low < validChars-1 && high == validChars-1
		for _, char := range patternChars[low : high+1] {
			in[char] = true
		}
	}
	for _, plain := range []string{"a", "b", "c", "é", "*", "?", "["} { // need no escape
		if rapid.Bool().Draw(t, "plain") {
			text = strings.ReplaceAll(text, `\`+plain, plain)
		}
	}
	negated := rapid.Bool().Draw(t, "negated")
	if negated {
		text = "^" + text
	}
	var chars []string
	for i, char := range patternChars {
		if inside := in[char] || i >= validChars && invalid; inside != negated {
			chars = append(chars, char)
		}
	}
	return slowToken{Text: "[" + text + "]", Chars: chars}
}

// One element of ASCII means what it means to path.Match, and is valid when that says so.
func TestElementsAgreeWithPathMatch(t *testing.T) {
	part := rapid.SampledFrom([]string{"*", "?", "[", "]", "^", "-", `\`, "a", "b", "c", "[ab]", "[^a", "a-c]", "."})
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(part, 1, 8).Draw(t, "pattern"), "")
		name := rapid.StringOfN(rapid.RuneFrom([]rune(`aaabbbc.*?[]^-\`)), 1, 8, -1).Draw(t, "name")
		want, err := path.Match(pattern, name)
		if err != nil || pattern == "." || pattern == ".." {
			require.NotEmpty(t, Check(pattern))
			return
		}
		require.Empty(t, Check(pattern))
		for _, there := range []string{name, "x/" + name} {
			require.Equal(t, want, Match(pattern, there), "%q of %q", there, pattern)
		}
		require.Equal(t, want, Match("/"+pattern, name), "%q of %q", name, pattern)
	})
}

func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"*.lock", "a/b.lock"}, {"jobs/**/[^a-c]?\\*", "jobs/x/dd*"}, {"**/a/**", "a"}, {"[", "["}, {"\\", "\\"},
		{"[a-", "é"}, {"//", "a//b"}, {"\xff[\xfe]", "\xff\xfe"},
	} {
		f.Add(seed[0], seed[1])
	}
	fuzzing.Run(f, func(t *testing.T, pattern, path string) {
		fits := Match(pattern, path)
		if Check(pattern) != "" || strings.Contains("/"+path+"/", "//") {
			return // it ended
		}
		if strings.Contains(pattern, "/") {
			require.Equal(t, fits, Match("/"+strings.TrimPrefix(pattern, "/"), path))
			require.Equal(t, fits, Match("top/"+strings.TrimPrefix(pattern, "/"), "top/"+path))
		} else {
			require.Equal(t, fits, Match("**/"+pattern, path))
		}
		require.True(t, Match("/"+escaped(path), path), "a path fits itself")
		if fits && !strings.ContainsAny(pattern, `*?[\`) {
			require.True(t, strings.HasSuffix(path, strings.TrimPrefix(pattern, "/")))
		}
	})
}

// escaped gives a pattern for one path only.
func escaped(path string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(path)
}

// hostilePatterns gives patterns and paths of about n bytes over which a careless matcher takes long, and
// which do not fit.
func hostilePatterns(n int) map[string][2]string {
	fill := func(n int, unit, end string) string { return strings.Repeat(unit, (n-len(end))/len(unit)) + end }
	deep, long, half := fill(n, "a/", "a"), fill(n, "a", ""), n/2
	name := strings.Repeat("a", 250)
	names := fill(n, name+"/", name)
	return map[string][2]string{
		"double stars":           {fill(n, "**/", "b"), deep},
		"double stars and names": {fill(n, "**/a/", "b"), deep},
		"double star and stars":  {"**/" + fill(half, "*/", "b"), deep},
		"double star and names":  {"**/" + fill(half, "a/", "b"), deep},
		"two double stars":       {"**/" + fill(half, "a/", "**/b"), deep},
		"stars":                  {fill(n, "*", "b"), long},
		"stars and names":        {fill(n, "*a", "b"), long},
		"star and name":          {"*" + fill(half, "a", "b"), long},
		"star and questions":     {"*" + fill(half, "?", "b"), long},
		"star and classes":       {"*" + fill(half, "[^b]", "b"), long},
		"star and long class":    {"*[" + fill(n-2, "b", "]"), long},
		"long names":             {"**/" + fill(n-3, "*"+name[:120]+"/", "b"), names},
		"stars in long names":    {"**/" + fill(n-3, "*a*a*a*/", "b"), names},
	}
}

func TestHostilePatternsEnd(t *testing.T) {
	for name, c := range hostilePatterns(MaxLength - 10) {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, Check(c[0]))
			require.False(t, Match(c[0], c[1]))
		})
	}
}

// The rates for 1 KiB and 4 KiB are alike or rise: a match takes at most the product of the lengths, which
// is what the bytes of the rates are.
func BenchmarkHostilePatterns(b *testing.B) {
	for _, size := range []int{MaxLength / 4, MaxLength} {
		for name, c := range hostilePatterns(size) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(c[0]) * len(c[1])))
				for b.Loop() {
					Match(c[0], c[1])
				}
			})
		}
	}
}

func BenchmarkPatterns(b *testing.B) {
	for _, pattern := range []string{"*.lock", "/deploy.lock", "jobs/**/*.lock"} {
		b.Run(strings.ReplaceAll(pattern, "/", "|"), func(b *testing.B) {
			for b.Loop() {
				Match(pattern, "jobs/nightly/backup-0017.lock")
			}
		})
	}
}
