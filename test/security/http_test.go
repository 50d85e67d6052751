package security

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// get asks a server for a path by HTTPS.
func get(v visitor, address, path string) (status int, body string, err error) {
	transport := &http.Transport{DisableKeepAlives: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
		return v.connect(address, "http/1.1")
	}}
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	answer, err := client.Get("https://" + address + path)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}
