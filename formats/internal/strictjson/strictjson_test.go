package strictjson_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/formats/internal/strictjson"
	"lockfs/formats/lockfact"
	"lockfs/test/fuzzing"
)

func TestParseRefusesWhatEncodingJSONForgives(t *testing.T) {
	for content, problem := range map[string]string{
		"":                        "unexpected EOF",
		" \n":                     "unexpected EOF",
		"{":                       "unexpected EOF",
		`{"a":1`:                  "unexpected EOF",
		`{"a":"`:                  "unexpected EOF",
		`{"a":tru`:                "unexpected EOF",
		`{"a":1}}`:                "follows",
		`{"a":1}{}`:               "follows",
		`{"a":1,}`:                "invalid character",
		`{a:1}`:                   "invalid character",
		`{"a" 1}`:                 "invalid character",
		"{\"a\":\"\n\"}":          "invalid character",
		`{"a":01}`:                "invalid character",
		`{"a":NaN}`:               "invalid character",
		"{\"a\":\"\xff\"}":        "UTF-8",
		"\ufeff{}":                "invalid character",
		"[]":                      "not a JSON object",
		`"a"`:                     "not a JSON object",
		"null":                    "not a JSON object",
		"1":                       "not a JSON object",
		`{"a":1,"a":1}`:           "a: appears twice",
		`{"a":1,"\u0061":1}`:      "a: appears twice",
		`{"a\n":1,"a\n":1}`:       `"a\n": appears twice`,
		`{"\ud800":1,"\ufffd":1}`: "appears twice",
		`{"a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`: "max depth",
	} {
		_, err := strictjson.Parse([]byte(content))
		require.ErrorContains(t, err, problem, "%.60s", content)
	}
	_, err := strictjson.Parse([]byte(`{"a`))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestMembersStandWhereTheyAre(t *testing.T) {
	const text = "\t{ \"a\" : \"x\\\"}\" ,\r\n\"b\":[1,{\"c\":\"]\"}, null] , \"\":-1.5e+3,\"d\\u0065\\\\\":{ },\"n\":null}\n"
	o, err := strictjson.Parse([]byte(text))
	require.NoError(t, err)
	for name, raw := range map[string]string{
		"a": `"x\"}"`, "b": `[1,{"c":"]"}, null]`, "": "-1.5e+3", `de\`: "{ }",
	} {
		require.Equal(t, raw, string(o.Raw(name)))
		require.Equal(t, strings.Replace(text, raw, "NEW", 1), string(o.Replace(name, []byte("NEW"))))
	}
	require.True(t, o.Has("a", "b", "n"))
	require.Nil(t, o.Raw("n"), "null is missing")
	require.Nil(t, o.Raw("A"), "names match exactly")
	require.False(t, o.Has("a", "c"))
	require.True(t, o.Is("a", `x"}`))
	require.False(t, o.Is("a", "x"))
	require.False(t, o.Is("b", ""))
	for name, than := range map[string][]string{"a": nil, "b": {"a", "n"}, `de\`: {"", "b", "a"}} {
		other, found := o.Other(than...)
		require.True(t, found)
		require.Equal(t, name, other)
	}
	_, found := o.Other("a", "b", "", `de\`, "n", "more")
	require.False(t, found)
}

func TestFieldsKeepTheFirstError(t *testing.T) {
	o, err := strictjson.Parse([]byte(`{"s":"x","i":7,"b":false,"t":"2025-01-01T00:00:00Z","o":{},"pid":0}`))
	require.NoError(t, err)
	f := o.Fields()
	require.Equal(t, "x", f.String("s"))
	require.EqualValues(t, 7, f.Int("i"))
	require.False(t, *f.OptionalBool("b"))
	require.Equal(t, 2025, f.Time("t").Year())
	require.Equal(t, "{}", string(f.Object("o")))
	require.Empty(t, f.OptionalString("missing"))
	require.Nil(t, f.OptionalBool("missing"))
	require.Nil(t, f.OptionalObject("missing"))
	require.NoError(t, f.Err())

	for read, want := range map[string]struct {
		read func(*strictjson.Fields)
		err  string
	}{
		"string":      {func(f *strictjson.Fields) { f.String("i") }, "i: must be a string"},
		"string of o": {func(f *strictjson.Fields) { f.OptionalString("o") }, "o: must be a string"},
		"int":         {func(f *strictjson.Fields) { f.Int("s") }, "s: must be an integer"},
		"bool":        {func(f *strictjson.Fields) { f.OptionalBool("i") }, "i: must be true or false"},
		"time":        {func(f *strictjson.Fields) { f.Time("s") }, "s: must be an RFC 3339 timestamp such as 2025-12-18T10:30:10Z"},
		"no time":     {func(f *strictjson.Fields) { f.Time("x") }, "x: is required"},
		"object":      {func(f *strictjson.Fields) { f.Object("s") }, "s: must be an object"},
		"no object":   {func(f *strictjson.Fields) { f.Object("x") }, "x: is required"},
		"pid":         {func(f *strictjson.Fields) { f.PID() }, "pid: must be between 1 and 2147483647"},
		"first":       {func(f *strictjson.Fields) { f.Int("s"); f.String("x"); f.PID() }, "s: must be an integer"},
	} {
		f := o.Fields()
		want.read(f)
		require.EqualError(t, f.Err(), want.err, read)
		var fieldError *lockfact.FieldError
		require.ErrorAs(t, f.Err(), &fieldError)
	}
}

// Whatever is parsed has the members that encoding/json finds, with the same values.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, ` { "a" : [ {"b":"]\\"} ] , "c\u0000":-1e9 }`, `{"a":"\ud83d\ude00","":null}`,
		`{"a":{"b":{"c":[[],[]]}},"d":true}`, `{"a":1`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	fuzzing.Run(f, func(t *testing.T, content []byte) {
		o, err := strictjson.Parse(content)
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(content, &want))
		for name, raw := range want {
			require.True(t, o.Has(name))
			if string(raw) != "null" {
				require.Equal(t, string(raw), string(o.Raw(name)))
			}
			require.Equal(t, string(content), string(o.Replace(name, raw)))
		}
	})
}
