package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitingIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		over := waiting(&said, time.Second, "reading")
		time.Sleep(999 * time.Millisecond)
		over()
		require.Empty(t, said.String())
		over = waiting(&said, time.Second, "reading")
		time.Sleep(2 * time.Second)
		over()
		require.Equal(t, "lockfs: reading ...\n", said.String())
	})
	var said bytes.Buffer
	Waiting(&said, "for nobody")()
	require.Empty(t, said.String())
}
