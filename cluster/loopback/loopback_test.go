package loopback

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func status(handler http.Handler, method, host string, headers ...string) int {
	r := httptest.NewRequest(method, "http://"+host+"/", strings.NewReader("{}"))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code
}

func TestGuard(t *testing.T) {
	name := NewName()
	require.NotEqual(t, name, NewName())
	guarded := Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), name)
	for host, code := range map[string]int{
		"localhost:7422": 200, "localhost": 200, "127.0.0.1:7422": 200, "127.1.2.3": 200, "[::1]:7422": 200, "[::1]": 200, name + ":80": 200, strings.ToUpper(name): 200,
		"evil.example:7422": 403, "other.localhost": 403, "10.0.0.1:7422": 403, "127.0.0.1.evil.example": 403, "0.0.0.0": 403,
	} {
		require.Equal(t, code, status(guarded, http.MethodGet, host), host)
		require.Equal(t, code, status(guarded, http.MethodPost, host), "a program: %s", host)
		require.Equal(t, 403, status(guarded, http.MethodPost, host, "Origin", "http://evil.example"), host)
		require.Equal(t, 403, status(guarded, http.MethodPost, host, "Sec-Fetch-Site", "cross-site"), host)
	}
}

func TestRequireJSON(t *testing.T) {
	handler := RequireJSON(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for kind, code := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain; application/json": 415,
	} {
		require.Equal(t, code, status(handler, http.MethodPost, "localhost", "Content-Type", kind), kind)
		require.Equal(t, 200, status(handler, http.MethodGet, "localhost", "Content-Type", kind), "GET as %s", kind)
	}
}
