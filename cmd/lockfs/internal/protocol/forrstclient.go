package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/formats/forrst"
)

// forrstClient calls functions at a Forrst endpoint.
type forrstClient struct {
	endpoint string
	timeout  time.Duration
}

// call calls a function and stores its result. An error of the protocol is a *forrst.Error.
func (c *forrstClient) call(ctx context.Context, function string, arguments, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	text, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	body, err := json.Marshal(forrst.Request{
		Protocol: forrst.Protocol{Name: forrst.ProtocolName, Version: forrst.ProtocolVersion},
		ID:       forrst.NewOwner(),
		Call:     forrst.Call{Function: function, Version: "1.0.0", Arguments: text},
	})
	if err != nil {
		return err
	}
	endpoint, err := forrst.ParseUpstream(c.endpoint)
	if err != nil {
		return fmt.Errorf("--endpoint %q: %w; give one like %s", c.endpoint, err, cli.DefaultForrstEndpoint)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w; is there a server with --forrst-addr?", err)
	}
	defer func() { _ = response.Body.Close() }()
	return c.read(response, result)
}

func (c *forrstClient) read(response *http.Response, result any) error {
	answer := new(struct {
		Protocol forrst.Protocol `json:"protocol"`
		Result   json.RawMessage `json:"result"`
		Errors   []*forrst.Error `json:"errors"`
	})
	err := json.NewDecoder(io.LimitReader(response.Body, forrst.MaxResponse)).Decode(answer)
	switch {
	case err != nil || answer.Protocol.Name != forrst.ProtocolName:
		return fmt.Errorf("%s is no Forrst endpoint: it answered %s; the server's --forrst-addr says where it is, as in %s",
			c.endpoint, response.Status, cli.DefaultForrstEndpoint)
	case len(answer.Errors) > 0:
		return answer.Errors[0]
	}
	return json.Unmarshal(answer.Result, result)
}
