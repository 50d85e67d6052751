package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"lockfs/cluster/clusterpb"
	"lockfs/cluster/rpc"
	"lockfs/raftstore/storepb"
)

// still is a cluster whose locks stay as they are.
type still struct {
	rpc.Node // nothing else is asked
	locks    []*storepb.Lock
}

func (s *still) Execute(_ context.Context, req *clusterpb.ExecuteRequest) (*clusterpb.ExecuteReply, error) {
	result := &storepb.Result{Index: 1}
	if query, is := req.GetQuery().GetQuery().(*storepb.Query_ListLocks); is && query.ListLocks.GetAfterParent() == 0 {
		result.Locks = s.locks
	}
	return &clusterpb.ExecuteReply{Result: result}, nil
}

func (s *still) Status(context.Context, *clusterpb.StatusRequest) (*clusterpb.StatusReply, error) {
	return new(clusterpb.StatusReply), nil
}

func (s *still) Sessions(context.Context, *clusterpb.SessionsRequest) (*clusterpb.SessionsReply, error) {
	return new(clusterpb.SessionsReply), nil
}

// sixLocks are in another order by each column.
func sixLocks() *still {
	lock := func(name, state, holder, host string, pid uint32, acquired, expires int64, waiters int, token uint64) *storepb.Lock {
		l := &storepb.Lock{
			Parent: 1, Name: []byte(name), Path: []byte(name), State: state, Because: "its format", Token: token, Acquired: acquired, Attr: new(storepb.Attr),
			Facts: &storepb.Facts{Format: storepb.Format_PID, Holder: holder, Host: host, Pid: pid, ExpiresAt: expires},
		}
		for range waiters {
			l.AdvisoryLocks = append(l.AdvisoryLocks, &storepb.AdvisoryLock{Position: 1})
		}
		return l
	}
	return &still{locks: []*storepb.Lock{
		lock("d", "held", "bob", "h3", 0, 20, 0, 1, 5),
		lock("a", "held", "zoe", "h1", 0, 50, 0, 0, 4),
		lock("f", "", "", "", 0, 60, 0, 0, 3), // which the viewer may not read
		lock("b", "stale", "amy", "h1", 0, 10, 30, 0, 6),
		lock("e", "held", "", "", 0, 30, 40, 4, 2),
		lock("c", "unreachable", "", "h2", 12, 40, 20, 0, 1),
	}}
}

var rowKeys = regexp.MustCompile(`data-key="1/(\w)"`)

// TestTheServerSorts by each column, in both directions; the page and what is answered as JSON have one order. A limit leaves the first.
func TestTheServerSorts(t *testing.T) {
	server := New(Config{Front: sixLocks(), Administers: func(rpc.Caller) bool { return true }, Logger: strict(t)})
	get := func(target string) string {
		request := httptest.NewRequest(http.MethodGet, target, nil)
		answer := httptest.NewRecorder()
		server.SocketHandler().ServeHTTP(answer, request.WithContext(rpc.WithCaller(t.Context(), rpc.Caller{Role: rpc.RoleUser})))
		require.Equal(t, http.StatusOK, answer.Code, "%s: %s", target, answer.Body)
		return answer.Body.String()
	}
	answered := func(query string) (paths string) {
		var list apiLockList
		require.NoError(t, json.Unmarshal([]byte(get("/v1/locks"+query)), &list))
		require.Equal(t, 6, list.Found)
		for _, l := range list.Locks {
			paths += l.Path
		}
		return paths
	}
	shown := func(query string) (paths string) {
		for _, row := range rowKeys.FindAllStringSubmatch(get("/"+query), -1) {
			paths += row[1]
		}
		return paths
	}
	const troubleFirst = "cbedaf"
	require.Equal(t, troubleFirst, answered(""))
	require.Equal(t, troubleFirst, answered("?sort=no-column"))
	require.Equal(t, troubleFirst, shown(""))

	orders := map[string]string{
		"path": "abcdef", "state": "adefbc", "holder": "efbdca", "format": "fabcde", "host": "efabcd", "age": "bdecaf",
		"expires": "cbeadf", "waiters": "edabcf", "token": "cefadb",
	}
	require.Len(t, orders, len(columns), "each column")
	for column, order := range orders {
		require.Equal(t, order, answered("?sort="+column), column)
		require.Equal(t, order, shown("?sort="+column), column)
		require.Equal(t, order[:2], answered("?limit=2&sort="+column), column)
		backwards := strings.Split(order, "")
		slices.Reverse(backwards)
		require.Equal(t, strings.Join(backwards, ""), answered("?sort=-"+column), column)
		require.Equal(t, strings.Join(backwards, ""), shown("?sort=-"+column), column)
	}
	require.Contains(t, get("/?sort=path"), `aria-sort="ascending"><a href="/?sort=-path"`, "the same column again reverses the order")
	require.Contains(t, get("/?sort=age"), `aria-sort="descending"><a href="/?sort=-age"`, "the oldest are first")
}
