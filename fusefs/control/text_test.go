package control

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneWord(t *testing.T) {
	for text, want := range map[string]string{
		"": "-", "-": `"-"`, "w": "w", "a b": `"a\x20b"`, `"a`: `"\"a"`, "a\n": `"a\n"`, "\u00a0": `"\u00a0"`, "ö": "ö",
	} {
		word := oneWord(text)
		assert.Equal(t, want, word)
		if strings.HasPrefix(word, `"`) {
			same, err := strconv.Unquote(word)
			require.NoError(t, err)
			assert.Equal(t, text, same)
		}
	}
}
