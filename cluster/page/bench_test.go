package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// full is a cluster with very many locks, one of which is another one each time they are listed.
type full struct {
	rpc.Node // nothing else is asked
	locks    []*storepb.Lock
	index    uint64
}

const benchmarkLocks = 10_000

func newFull() *full {
	f := new(full)
	for i := range benchmarkLocks {
		f.locks = append(f.locks, &storepb.Lock{
			Parent: 1, Name: fmt.Appendf(nil, "%05d.lock", i), Path: fmt.Appendf(nil, "team/%05d.lock", i), Token: uint64(i + 1), State: "held",
			Because: "its content is of format pid", Acquired: time.Now().UnixNano(), Attr: new(storepb.Attr),
			Facts: &storepb.Facts{Format: storepb.Format_PID, Host: fmt.Sprintf("host-%d", i%100), Pid: uint32(i + 1)},
		})
	}
	return f
}

func (f *full) Execute(_ context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	result := new(storepb.Result)
	switch query := req.GetQuery().GetQuery().(type) {
	case *storepb.Query_StatFs:
		f.index++
		f.locks[f.index%benchmarkLocks].Token += benchmarkLocks
		result.Index = f.index
	case *storepb.Query_ListLocks:
		if query.ListLocks.GetAfterParent() == 0 {
			result.Locks = f.locks
		}
	}
	return &clusterpb.ExecuteReply{Result: result}, nil
}

func (f *full) Status(context.Context, *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return new(clusterpb.StatusReply), nil
}

func (f *full) Sessions(context.Context, *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return new(clusterpb.SessionsReply), nil
}

// BenchmarkAPageOfManyLocks measures an update of the page in the daemon, with 10,000 locks of which one has changed: listing, filter,
// order, and changed rows. The network is not in it.
func BenchmarkAPageOfManyLocks(b *testing.B) {
	f := newFull()
	s := New(Config{Front: f, Administers: func(rpc.Caller) bool { return true }, Logger: quiet()})
	request := httptest.NewRequest(http.MethodGet, "/?sort=path&q=team", nil)
	before := newSent()
	for b.Loop() {
		s.listings.mine(request.Context()).asked = time.Time{}
		s.next(request, kinds[0], before)
	}
	require.Len(b, before.order["locks"], rowsShown)
}
