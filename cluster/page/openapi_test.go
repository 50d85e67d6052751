package page

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnswersAreAsDescribed holds what is answered against the schemas of openapi.json.
func TestAnswersAreAsDescribed(t *testing.T) {
	source, err := files.ReadFile("openapi.json")
	require.NoError(t, err)
	var document map[string]any
	require.NoError(t, json.Unmarshal(source, &document))
	d := openDesk(t)
	d.take("a.lock", 0o644)
	d.take("b.lock", 0o600)
	answers := map[string][]string{
		"/v1/locks":        {"/v1/locks", "/v1/locks?state=all&sort=-age&limit=1"},
		"/v1/locks/{path}": {"/v1/locks/a.lock"},
		"/v1/hosts":        {"/v1/hosts"},
		"/v1/members":      {"/v1/members"},
		"/v1/events":       {"/v1/events?follow=false"},
	}
	paths := document["paths"].(map[string]any)
	require.Len(t, paths, len(answers), "each path is asked")
	for path, targets := range answers {
		content := at(paths[path], "get", "responses", "200", "content").(map[string]any)
		for kind, described := range content {
			for _, target := range targets {
				for _, uid := range []uint32{0, 1000} {
					for line := range strings.Lines(d.get(uid, target)) {
						var answer any
						require.NoError(t, json.Unmarshal([]byte(line), &answer), "%s %s", kind, target)
						require.NoError(t, fits(document, at(described, "schema"), answer), target)
					}
				}
			}
		}
	}
	failure := d.ask(0, "GET", "/v1/locks/none", nil)
	require.Equal(t, 404, failure.Code)
	var answer any
	require.NoError(t, json.Unmarshal(failure.Body.Bytes(), &answer))
	require.NoError(t, fits(document, at(document, "components", "schemas", "Error"), answer))
	require.Error(t, fits(document, at(document, "components", "schemas", "Lock"), answer), "this test can tell")
}

func at(value any, keys ...string) any {
	for _, key := range keys {
		value = value.(map[string]any)[key]
	}
	return value
}

// fits says what is not as the schema has it, in the part of JSON Schema that the description uses.
func fits(document, schema, value any) error {
	s := schema.(map[string]any)
	if ref, has := s["$ref"].(string); has {
		return fits(document, at(document, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), value)
	}
	if allowed, has := s["enum"].([]any); has && !slices.Contains(allowed, value) {
		return fmt.Errorf("%v is none of %v", value, allowed)
	}
	switch kind := s["type"].(string); kind {
	case "object":
		object, is := value.(map[string]any)
		if !is {
			return fmt.Errorf("%v is no object", value)
		}
		properties := s["properties"].(map[string]any)
		for _, name := range s["required"].([]any) {
			if _, has := object[name.(string)]; !has {
				return fmt.Errorf("%v has no %s", object, name)
			}
		}
		for name, part := range object {
			described, has := properties[name]
			if !has {
				return fmt.Errorf("%s is not described", name)
			}
			if err := fits(document, described, part); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case "array":
		list, is := value.([]any)
		if !is {
			return fmt.Errorf("%v is no array", value)
		}
		for _, part := range list {
			if err := fits(document, s["items"], part); err != nil {
				return err
			}
		}
	case "string":
		text, is := value.(string)
		if !is {
			return fmt.Errorf("%v is no string", value)
		}
		if s["format"] == "date-time" {
			_, err := time.Parse(time.RFC3339, text)
			return err
		}
	case "integer", "number":
		number, is := value.(float64)
		if !is || kind == "integer" && (number < 0 || number != math.Trunc(number)) {
			return fmt.Errorf("%v is no %s", value, kind)
		}
	case "boolean":
		if _, is := value.(bool); !is {
			return fmt.Errorf("%v is no boolean", value)
		}
	default:
		return fmt.Errorf("type %s", kind)
	}
	return nil
}
