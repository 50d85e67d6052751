package forrst

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"lockfs/formats/pause"
)

const (
	// settlePatience limits a client's wait for the release of its lock if the store does not answer.
	settlePatience = 15 * time.Second
	// settlePause is the pause between two attempts.
	settlePause = 500 * time.Millisecond
	// largestMargin is the longest time between the end of a call and the expiry of its lock.
	largestMargin = time.Second
)

// errCrowded means that the limit of waiting requests is reached.
var errCrowded = errors.New("too many requests wait for locks")

// call is a request to a function, with a lock if it has options.
type call struct {
	runner  *Runner
	request *Request
	options *Options
	key     string // the full key
	body    []byte
}

func (c *call) serve(w http.ResponseWriter, r *http.Request) {
	grant, err := c.acquire(r.Context())
	switch {
	case errors.Is(err, errCrowded):
		crowded(w, c.request, c.runner.MaxWaiting, "wait for locks")
		return
	case err != nil:
		c.refuse(w, err)
		return
	case grant.Answer != nil:
		w.Header().Set(ReplayHeader, "true")
		parseAnswer(grant.Answer).write(w)
		return
	case r.Context().Err() != nil: // the client is gone
		c.settle(r.Context(), grant, nil, true)
		return
	}
	answer, fate := c.run(r, grant)
	ends := fate == NotCalled || fate == Ended && c.options.Releases()
	data := c.options.Granted(grant.Lock)
	if fate == NotCalled {
		data = c.options.Refused()
	}
	var record []byte
	if fate != NotCalled && c.once() {
		record = c.toRecord(answer, c.dataForOthers(data, ends))
	}
	c.settle(r.Context(), grant, record, ends)
	told := c.withData(answer, data)
	if told.foreign && !ends && c.options.Owner == "" {
		told.header.Set(OwnerHeader, data.Owner) // without the token the client could not release it
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	told.write(w)
}

// once reports whether another attempt of the request counts. If the lock is left to the client, the request
// must name the owner: otherwise the attempt may come from another client.
func (c *call) once() bool {
	return c.runner.Replay > 0 && (c.options.Releases() || c.options.Owner != "")
}

// dataForOthers returns the lock's data for another attempt. It omits an owner token made by this server
// while the lock may be held.
func (c *call) dataForOthers(data Data, ends bool) Data {
	if ends || c.options.Owner != "" {
		return data
	}
	return c.options.Refused()
}

func (c *call) acquire(ctx context.Context) (*Grant, error) {
	want := Want{
		Key: c.key, Owner: c.options.Owner, TTL: c.options.TTL.Duration(), Request: Identify(c.request.ID, c.body), Once: c.once(),
	}
	if c.options.Releases() {
		want.Within = c.runner.Replay
	}
	if want.Owner == "" {
		want.Owner = NewOwner()
	}
	if c.options.Block != nil {
		want.Wait = c.options.Block.Duration()
		leave, ok := enter(&c.runner.waiting, c.runner.MaxWaiting)
		if !ok {
			return nil, errCrowded
		}
		defer leave()
	}
	return c.runner.Store.Acquire(ctx, want)
}

// refuse answers a request that did not get the lock. As in the document's examples, only a request that did
// not wait gets the extension's data.
func (c *call) refuse(w http.ResponseWriter, err error) {
	reply := c.request.Reply(nil)
	switch {
	case !errors.Is(err, ErrHeld):
		fail(w, http.StatusServiceUnavailable, c.request, newUnavailable(err))
		return
	case c.options.Block != nil:
		reply.Errors = []*Error{NewTimeout(c.options, c.key)}
	default:
		reply.Errors = []*Error{NewAcquisitionFailed(c.options, c.key)}
		reply.Extensions = []Extension{{URN: URN, Data: c.options.Refused()}}
	}
	write(w, http.StatusOK, reply)
}

// left returns the time for which the lock is certainly held.
func (c *call) left(grant *Grant) time.Duration {
	return grant.Lock.ExpiresAt.Sub(c.runner.Store.Now())
}

// run passes the call on. The end of the lock ends it; a client that goes away does not.
func (c *call) run(r *http.Request, grant *Grant) (*answer, Fate) {
	left := c.left(grant)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), left-min(left/10, largestMargin))
	defer cancel()
	p := &passage{request: c.request, locked: true}
	r = passOn(ctx, r, c.body, p)
	r.Header.Del("Accept-Encoding") // this package reads the answer
	if grant.Token != 0 {
		r.Header.Set(TokenHeader, fmt.Sprint(grant.Token))
	}
	recorder := newRecorder()
	if ctx.Err() != nil { // acquiring the lock took too long
		e := &Error{Code: Unavailable, Message: "The lock's time was over before the call began"}
		return failed(http.StatusServiceUnavailable, c.request, e), NotCalled
	}
	panicked := c.panics(func() { c.runner.Next.ServeHTTP(recorder, r) })
	return c.judge(recorder, panicked, p.fate == Unfinished && ctx.Err() != nil), p.fate
}

// judge turns the function's response into an answer.
func (c *call) judge(r *recorder, panicked, late bool) *answer {
	switch {
	case late:
		e := &Error{Code: DeadlineExceeded, Message: "The lock's time was over before there was an answer"}
		return failed(http.StatusGatewayTimeout, c.request, e)
	case r.overflow:
		e := &Error{Code: DependencyError, Message: fmt.Sprintf("The response has more than %d bytes", MaxResponse)}
		return failed(http.StatusBadGateway, c.request, e)
	case panicked:
		return failed(http.StatusInternalServerError, c.request, &Error{Code: InternalError, Message: "The function failed"})
	case !r.begun:
		return failed(http.StatusBadGateway, c.request, &Error{Code: DependencyError, Message: "The function did not answer"})
	}
	return &answer{status: r.status, body: r.body.Bytes(), header: r.header}
}

func (c *call) panics(run func()) (panicked bool) {
	defer func() {
		if reason := recover(); reason != nil {
			panicked = true
			c.runner.logger().Error("a function panicked", "function", c.request.Call.Function, "reason", reason, "stack", string(debug.Stack()))
		}
	}()
	run()
	return false
}

// withData adds the lock's data to the answer. An answer without room for it passes unchanged.
func (c *call) withData(a *answer, data Data) *answer {
	entry, err := json.Marshal(Extension{URN: URN, Data: data})
	if err != nil {
		panic(err) // strings and times of this century
	}
	if isResponse(a.body) {
		if body, err := addExtension(a.body, entry); err == nil {
			return &answer{status: a.status, body: body, header: a.header}
		}
	}
	return &answer{status: a.status, body: a.body, header: a.header.Clone(), foreign: true}
}

// settle records the answer, unless it is nil, and then ends the lock if drop is set, even if the recording
// failed. It retries until the lock has expired; the client waits at most settlePatience.
func (c *call) settle(ctx context.Context, grant *Grant, record []byte, drop bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(c.left(grant), settlePatience))
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		defer cancel()
		store := c.runner.Store
		if record != nil {
			c.record(ctx, grant, record, drop)
		}
		if drop {
			_ = c.insist(ctx, func() error { return store.Drop(ctx, grant) })
		}
	}()
	select {
	case <-settled:
	case <-time.After(settlePatience):
	}
}

// record keeps the answer for other attempts: for the time Replay if the lock ends now, otherwise as long as
// the lock. If the lock is to end, record waits at most settlePatience for the store.
func (c *call) record(ctx context.Context, grant *Grant, record []byte, ends bool) {
	keep := c.runner.Replay
	if ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, settlePatience)
		defer cancel()
	} else {
		keep = max(keep, c.left(grant))
	}
	err := c.insist(ctx, func() error { return c.runner.Store.Record(ctx, grant, record, keep) })
	if err != nil {
		c.runner.logger().Warn("an answer was not recorded: a repeated request would be a new call", "key", c.key, "error", err)
	}
}

// toRecord returns the answer for other attempts of the request.
func (c *call) toRecord(a *answer, data Data) []byte {
	text := c.withData(a, data).render()
	if len(text) <= MaxAnswer {
		return text
	}
	message := fmt.Sprintf("The request was done, but its response was too large to be kept: %d bytes", len(a.body))
	instead := failed(http.StatusOK, c.request, &Error{Code: ResponseNotKept, Message: message})
	return c.withData(instead, data).render()
}

// insist repeats do until the store succeeds or refuses.
func (c *call) insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || errors.Is(err, ErrRefused) {
			return err
		}
		c.runner.logger().Warn("a lock could not be settled yet", "key", c.key, "error", err)
		if pause.For(ctx, settlePause) != nil {
			return err
		}
	}
}
