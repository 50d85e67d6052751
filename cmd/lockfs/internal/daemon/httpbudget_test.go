package daemon

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/rpc"
)

// TestRequestsOfOneUserLeaveRoomForOthers and for root of the host; root of a container has no reserve.
func TestRequestsOfOneUserLeaveRoomForOthers(t *testing.T) {
	const conns = 32
	gate, begun := make(chan struct{}), make(chan struct{}, 2*conns)
	handler := withinBudget(callBudget("the socket of the page", conns), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-gate
	}))
	var running sync.WaitGroup
	ask := func(caller rpc.Caller) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r.WithContext(rpc.WithCaller(r.Context(), caller)))
		return answer
	}
	begin := func(caller rpc.Caller) {
		running.Go(func() { ask(caller) })
		<-begun
	}
	user := func(uid uint32) rpc.Caller { return rpc.Caller{Role: rpc.RoleUser, UID: uid} }
	for range conns / 8 {
		begin(user(1000))
	}
	refused := ask(user(1000))
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	require.Contains(t, refused.Body.String(), "requests by the socket of the page")
	for uid := range uint32(conns*7/8 - conns/8) {
		begin(user(2000 + uid))
	}
	require.Equal(t, http.StatusServiceUnavailable, ask(user(1001)).Code)
	require.Equal(t, http.StatusServiceUnavailable, ask(user(0)).Code)
	begin(rpc.Caller{Role: rpc.RoleUser, Administrator: true})
	close(gate)
	running.Wait()
	require.Equal(t, http.StatusOK, ask(user(1000)).Code)
}
