package forrst_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/formats/forrst"
	"lockfs/formats/lockfact"
	"lockfs/test/fuzzing"
)

var now = time.Date(2024, 3, 15, 10, 30, 0, 0, time.UTC)

func requireFieldError(t testing.TB, err error, field string) {
	t.Helper()
	var fieldError *lockfact.FieldError
	require.ErrorAs(t, err, &fieldError)
	require.Equal(t, field, fieldError.Field, "%v", err)
}

func requireJSON(t testing.TB, want string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, want, string(text))
}

func options(t testing.TB, text string) *forrst.Options {
	t.Helper()
	o, err := forrst.ParseOptions([]byte(text))
	require.NoError(t, err, text)
	return o
}

const (
	charge = `{"key":"user:123","ttl":{"value":30,"unit":"second"}}`
	report = `{"key":"billing:report","ttl":{"value":1,"unit":"hour"},"scope":"global",` +
		`"block":{"value":5,"unit":"second"},"auto_release":false}`
	monthly = `{"key":"billing:monthly","scope":"global","ttl":{"value":1,"unit":"hour"}}`
)

func TestForrstOptionsDefaults(t *testing.T) {
	o := options(t, charge)
	require.Equal(t, "user:123", o.Key)
	require.Equal(t, 30*time.Second, o.TTL.Duration())
	require.Equal(t, forrst.ScopeFunction, o.Scope)
	require.Nil(t, o.Block)
	require.Empty(t, o.Owner)
	require.True(t, o.Releases())
	require.Equal(t, o, options(t, `{"key":"user:123","ttl":{"value":30,"unit":"second"},"scope":null,`+
		`"block":null,"owner":null,"auto_release":null}`))
}

// A misspelt option would make another lock than is wanted.
func TestForrstOptionThatThereIsNotIsNamed(t *testing.T) {
	const known = `"key":"user:123","ttl":{"value":30,"unit":"second"}`
	for text, name := range map[string]string{
		`{` + known + `,"autoRelease":false}`:          "autoRelease",
		`{"Key":"k",` + known + `}`:                    "Key",
		`{` + known + `,"b":1,"a":2}`:                  "b",
		`{` + known + `,"ttl ":null}`:                  "ttl ",
		`{` + known + `,"a\nb":1}`:                     `"a\nb"`,
		`{"wait":{"value":1,"unit":"hour"},"key":"k"}`: "wait",
	} {
		_, err := forrst.ParseOptions([]byte(text))
		requireFieldError(t, err, name)
		require.ErrorContains(t, err, "there is no such option, only key, ttl, scope, block, owner, auto_release")
	}
}

func TestForrstOptionsOfTheExamples(t *testing.T) {
	o := options(t, report)
	require.Equal(t, forrst.ScopeGlobal, o.Scope)
	require.Equal(t, 5*time.Second, o.Block.Duration())
	require.False(t, o.Releases())
	requireJSON(t, report, o)
	require.Equal(t, time.Hour, options(t, monthly).TTL.Duration())
}

func TestForrstOptionsErrorsNameTheField(t *testing.T) {
	const ttl = `"ttl":{"value":1,"unit":"hour"}`
	for text, field := range map[string]string{
		`{` + ttl + `}`:                                                  "key",
		`{"key":"",` + ttl + `}`:                                         "key",
		`{"key":7,` + ttl + `}`:                                          "key",
		`{"Key":"k",` + ttl + `}`:                                        "Key",
		`{"key":"k","key":"l",` + ttl + `}`:                              "key",
		`{"key":"k"}`:                                                    "ttl",
		`{"key":"k","ttl":30}`:                                           "ttl",
		`{"key":"k","ttl":{"value":1}}`:                                  "ttl.unit",
		`{"key":"k","ttl":{"unit":"hour"}}`:                              "ttl.value",
		`{"key":"k","ttl":{"value":0,"unit":"hour"}}`:                    "ttl.value",
		`{"key":"k","ttl":{"value":-1,"unit":"hour"}}`:                   "ttl.value",
		`{"key":"k","ttl":{"value":1.5,"unit":"hour"}}`:                  "ttl.value",
		`{"key":"k","ttl":{"value":"1","unit":"hour"}}`:                  "ttl.value",
		`{"key":"k","ttl":{"value":9223372036854775807,"unit":"week"}}`:  "ttl.value",
		`{"key":"k","ttl":{"value":99999999999999999999,"unit":"hour"}}`: "ttl.value",
		`{"key":"k","ttl":{"value":1,"unit":"month"}}`:                   "ttl.unit",
		`{"key":"k","ttl":{"value":1,"unit":"seconds"}}`:                 "ttl.unit",
		`{"key":"k","ttl":{"value":1,"value":2,"unit":"hour"}}`:          "ttl.value",
		`{"key":"k","scope":"Global",` + ttl + `}`:                       "scope",
		`{"key":"k","scope":"",` + ttl + `}`:                             "scope",
		`{"key":"k","block":5,` + ttl + `}`:                              "block",
		`{"key":"k","block":{"value":5,"unit":"s"},` + ttl + `}`:         "block.unit",
		`{"key":"k","block":{"value":-5,"unit":"second"},` + ttl + `}`:   "block.value",
		`{"key":"k","owner":"",` + ttl + `}`:                             "owner",
		`{"key":"k","owner":"a\nb",` + ttl + `}`:                         "owner",
		`{"key":"k","auto_release":"false",` + ttl + `}`:                 "auto_release",
	} {
		_, err := forrst.ParseOptions([]byte(text))
		requireFieldError(t, err, field)
	}
}

func TestForrstDurationUnits(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`{"value":250,"unit":"millisecond"}`: 250 * time.Millisecond,
		`{"value":30,"unit":"second"}`:       30 * time.Second,
		`{"value":2,"unit":"minute"}`:        2 * time.Minute,
		`{"value":1,"unit":"hour"}`:          time.Hour,
		`{"value":1,"unit":"day"}`:           24 * time.Hour,
		`{"value":1,"unit":"week"}`:          168 * time.Hour,
	} {
		require.Equal(t, want, options(t, `{"key":"k","ttl":`+text+`}`).TTL.Duration())
	}
	require.Equal(t, "5 seconds", forrst.Duration{Value: 5, Unit: forrst.Second}.String())
	require.Equal(t, "1 hour", forrst.Duration{Value: 1, Unit: forrst.Hour}.String())
	require.Equal(t, "0 seconds", forrst.Duration{Unit: forrst.Second}.String())

	for d, want := range map[time.Duration]forrst.Duration{
		0:                       {Value: 0, Unit: forrst.Millisecond},
		1500 * time.Microsecond: {Value: 1, Unit: forrst.Millisecond},
		90 * time.Second:        {Value: 90, Unit: forrst.Second},
		120 * time.Second:       {Value: 2, Unit: forrst.Minute},
		48 * time.Hour:          {Value: 48, Unit: forrst.Hour},
	} {
		require.Equal(t, want, forrst.DurationOf(d))
	}
}

func TestForrstScopeMakesTheFullKey(t *testing.T) {
	full := func(text, function string) string {
		key, err := options(t, text).FullKey(function)
		require.NoError(t, err)
		return key
	}
	require.Equal(t, "lock:payments.charge:user:123", full(charge, "payments.charge"))
	require.Equal(t, "lock:billing:report", full(report, "billing.generateReport"))
	require.Equal(t, full(monthly, "a"), full(monthly, "b"))
	for _, key := range []string{"order:456:fulfillment", "inventory:warehouse:A:sku:XYZ"} {
		o := options(t, strings.Replace(charge, "user:123", key, 1))
		got, err := o.FullKey("f")
		require.NoError(t, err)
		require.Equal(t, "lock:f:"+key, got)
	}
}

func TestForrstKeysThatAreTooLongAreRefused(t *testing.T) {
	o := options(t, strings.Replace(charge, "user:123", strings.Repeat("k", 248), 1))
	_, err := o.FullKey("f")
	require.NoError(t, err, "lock:f: and 248 are 255")
	_, err = o.FullKey("fn")
	requireFieldError(t, err, "key")
	require.ErrorContains(t, err, "256 bytes, at most 255")
}

func TestForrstFileNamesAreReversible(t *testing.T) {
	for key, name := range map[string]string{
		"lock:billing:report": "lock:billing:report",
		"lock:f:a/b":          "lock:f:a%2Fb",
		"lock:f:100%":         "lock:f:100%25",
		"lock:f:a%2Fb":        "lock:f:a%252Fb",
		"lock:f:../..":        "lock:f:..%2F..",
		"..":                  "%2E.",
		".":                   "%2E",
		"a\x00\n\x7fb":        "a%00%0A%7Fb",
		"lock:f:Straße 7":     "lock:f:Straße 7",
	} {
		got, err := forrst.FileName(key)
		require.NoError(t, err)
		require.Equal(t, name, got)
		back, err := forrst.KeyOf(name)
		require.NoError(t, err)
		require.Equal(t, key, back)
	}
	for _, name := range []string{
		"", ".", "..", "a/b", "%", "%2", "%2f", "%41", "100%", "a%zz", "\xff", "%FF", strings.Repeat("a", 256),
	} {
		_, err := forrst.KeyOf(name)
		require.Error(t, err, "%q", name)
	}
	for _, key := range []string{"", "a\xff", strings.Repeat("/", 86)} {
		_, err := forrst.FileName(key)
		requireFieldError(t, err, "key")
	}
}

func TestForrstOwnersMustBeUUIDv4(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		owner := forrst.NewOwner()
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, owner)
		require.NoError(t, forrst.ValidateOwner(owner))
		require.False(t, seen[owner])
		seen[owner] = true
	}
	for _, owner := range []string{"", "a\nb", "a\xff", strings.Repeat("x", 256)} {
		requireFieldError(t, forrst.ValidateOwner(owner), "owner")
	}
	require.NoError(t, forrst.ValidateOwner("uuid-abc-123"))
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{"lock:f:user:123", "a/b%2F", "..", "%", "%2e.", "\x00"} {
		f.Add(seed)
	}
	fuzzing.Run(f, func(t *testing.T, s string) {
		if name, err := forrst.FileName(s); err == nil {
			require.LessOrEqual(t, len(name), 255)
			require.NotContains(t, name, "/")
			require.NotContains(t, []string{"", ".", ".."}, name)
			key, err := forrst.KeyOf(name)
			require.NoError(t, err)
			require.Equal(t, s, key)
		}
		if key, err := forrst.KeyOf(s); err == nil {
			name, err := forrst.FileName(key)
			require.NoError(t, err)
			require.Equal(t, s, name)
		}
	})
}
