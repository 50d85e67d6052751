package tower_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/tower"
)

func refusesNames(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		requireFieldError(t, tower.ValidateName(name), "lock_name")
	}
}

func TestTower22NamesMustContainOnlyLowerCaseDigitsUnderscoreHyphen(t *testing.T) {
	for _, name := range []string{"a", "7", "money-tracker-production", "a_b-c_9", "a--b"} {
		require.NoError(t, tower.ValidateName(name))
	}
	refusesNames(t, "a.b", "a:b", "a+b", "a\nb", "a\x00b", "é", "a$b")
}

func TestTower22NamesMustHave1To128Characters(t *testing.T) {
	refusesNames(t, "", strings.Repeat("a", 129))
	require.NoError(t, tower.ValidateName(strings.Repeat("a", 128)))
}

func TestTower22NamesMustBeFilesystemSafe(t *testing.T) {
	refusesNames(t, "a/b", "../a", "..", ".", `a\b`, "/")
}

func TestTower22NamesMustNotContainUppercase(t *testing.T) {
	refusesNames(t, "A", "money-Tracker")
}

func TestTower22NamesMustNotContainSpacesOrSpecialCharacters(t *testing.T) {
	refusesNames(t, "a b", " a", "a*", "a'b", "a;b", "a~")
}

func TestTower22NamesMustNotStartOrEndWithHyphen(t *testing.T) {
	refusesNames(t, "-a", "a-", "-")
}

func TestTower22NamesMustNotStartOrEndWithUnderscore(t *testing.T) {
	refusesNames(t, "_a", "a_", "_")
}

func TestTower21NamesComeFromTemplates(t *testing.T) {
	params := map[string]string{
		"app": "money-tracker", "environment": "production", "n": "3", "sneaky": "${params.app}", "up": "X",
	}
	for template, want := range map[string]string{
		"${params.app}-${params.environment}": "money-tracker-production",
		"deploy":                              "deploy",
		"${params.n}":                         "3",
		"x${params.n}${params.n}y":            "x33y",
	} {
		name, err := tower.ResolveName(template, params)
		require.NoError(t, err, template)
		require.Equal(t, want, name)
	}
	for template, problem := range map[string]string{
		"${params.missing}":     `no parameter "missing"`,
		"${params.}":            "${params.}",
		"${env.HOME}":           "${env.HOME}",
		"${}":                   "${}",
		"a-${params.app":        "${params.app",
		"a-${params.sneaky}":    "lock_name",
		"${params.up}":          "lock_name",
		"$params.app":           "lock_name",
		"":                      "lock_name: is required",
		"${params.app}/../etc":  "lock_name",
		"${params.app}${params": "${params",
	} {
		_, err := tower.ResolveName(template, params)
		require.ErrorContains(t, err, problem, template)
	}
}

func TestTower23LockFilesAreNamedAfterTheLock(t *testing.T) {
	require.Equal(t, "money-tracker-production.lock", tower.FileName("money-tracker-production"))
}

// An id is accepted that the specification's own scripts accept, but for what would break its lines.
func TestTower122RequestIDMustBeValidated(t *testing.T) {
	for _, id := range []string{
		"req_abc123def456", "550e8400-e29b-41d4-a716-446655440000", "7", "CI.42", "job:7", "x@y", "a b", "a/b", "../x", "-x", "é",
		"{6F9619FF-8B86-D011-B42D-00CF4FC964FF}", "$(rm -rf /)", strings.Repeat("r", 1000),
	} {
		require.NoError(t, tower.ValidateRequestID(id))
		l, err := tower.New("a", id, "deploy-app", "1.2.0", at("10:30:10"))
		require.NoError(t, err)
		content, err := l.Render()
		require.NoError(t, err)
		parsed, err := tower.Parse(content)
		require.NoError(t, err)
		require.Equal(t, id, parsed.RequestID)
	}
	for _, id := range []string{"", "a\n", "a\x00", "\x1b[2J", "a\x7f", "\u0085", "a\xff"} {
		requireFieldError(t, tower.ValidateRequestID(id), "request_id")
	}
}
