package cli

import (
	"bytes"
	"context"
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

func TestHowFarIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		far := []string{"entry 5 of 10", "entry 9 of 9", "done"}
		howFar := func(context.Context) string {
			defer func() { far = far[1:] }()
			return far[0]
		}
		over := waitingFor(t.Context(), &said, time.Second, howFar)
		time.Sleep(999 * time.Millisecond)
		over()
		require.Empty(t, said.String())
		over = waitingFor(t.Context(), &said, time.Second, howFar)
		time.Sleep(2500 * time.Millisecond)
		over()
		require.Equal(t, "\rlockfs: entry 5 of 10\rlockfs: entry 9 of 9 \n", said.String())
	})
	var said bytes.Buffer
	WaitingFor(t.Context(), &said, func(context.Context) string { return "for nobody" })()
	require.Empty(t, said.String())
}
