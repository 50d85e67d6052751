package security

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"lockfs/test/hosts"
	"lockfs/test/testcluster"
)

// Fields of messages.
const (
	executeCommand = 1
	executeQuery   = 2
	executeResult  = 3

	commandSession = 1
	commandNumber  = 2
	commandCaller  = 5
	commandOp      = 6

	opCreate       = 1
	opOpenSession  = 11
	opEndSession   = 17
	opSetRule      = 19
	opDeleteRule   = 20
	opForgetHost   = 21
	opAddAuthority = 27
	opPutToken     = 29
	opDeleteToken  = 30
	opAdmitHost    = 31
	opRevokeHost   = 32

	queryListTokens     = 22
	queryGetAdmission   = 23
	queryListAdmissions = 24
)

func change(op int32) message {
	return message{}.bytes(1, message{}.bytes(protowire.Number(op), nil))
}

// TestAMountIsNoServer has a mount's certificate ask every server for what takes a server's.
func TestAMountIsNoServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	own := asIn(t, p.mount.Host, p.IdentityDir("m"))
	execute := func(field int32, m message) message { return message{}.bytes(protowire.Number(field), m) }
	command := func(op int32) message {
		return execute(executeCommand, message{}.number(commandSession, 1).number(commandNumber, 1).bytes(commandOp, message{}.bytes(protowire.Number(op), nil)))
	}
	query := func(which int32) message { return execute(executeQuery, message{}.bytes(protowire.Number(which), nil)) }
	for _, asked := range []struct {
		what   string
		method byte
		m      message
	}{
		{"Join", methodJoin, message{}.bytes(1, message{}.text(1, "spy").text(2, "spy").text(5, p.stranger.Addr()+":7420"))},
		{"Remove", methodRemove, message{}.text(1, "c")},
		{"set_rule", methodChange, change(opSetRule)},
		{"delete_rule", methodChange, change(opDeleteRule)},
		{"forget_host", methodChange, change(opForgetHost)},
		{"add_authority", methodChange, change(opAddAuthority)},
		{"put_token", methodChange, change(opPutToken)},
		{"delete_token", methodChange, change(opDeleteToken)},
		{"revoke_host", methodChange, message{}.bytes(1, message{}.bytes(opRevokeHost, message{}.text(1, "a")))},
		{"end_session", methodChange, change(opEndSession)},
		{"admit_host", methodChange, change(opAdmitHost)},
		{"end_session", methodExecute, command(opEndSession)},
		{"admit_host", methodExecute, command(opAdmitHost)},
		{"set_rule", methodExecute, command(opSetRule)},
		{"list_tokens", methodExecute, query(queryListTokens)},
		{"get_admission", methodExecute, query(queryGetAdmission)},
		{"list_admissions", methodExecute, query(queryListAdmissions)},
		{"Status with hash, confirm or reached", methodStatus, message{}.number(1, 1)},
		{"Status with hash, confirm or reached", methodStatus, message{}.number(2, 1)},
	} {
		labels := fmt.Sprintf(`{method=%q,role="client"}`, asked.what)
		before := p.count(t, "lockfs_refused_calls_total", labels)
		p.requireNoEffect(t, func() {
			for _, n := range p.Nodes {
				said, err := own.call(n.Addr(), protocolRPC, asked.method, asked.m)
				require.NoError(t, err)
				assert.Equal(t, kindRefused, said.kind, "%s: %v", asked.what, said)
				assert.EqualValues(t, codeNotPermitted, said.message.numberOf(1), "%s: %v", asked.what, said)
				assert.Contains(t, said.message.textOf(2), "that takes ", asked.what)
				hosts.Eventually(t, "it is logged", func() (string, bool) {
					return n.Server.Log(), regexp.MustCompile("a call was refused.*m.*" + asked.what).MatchString(n.Server.Log())
				})
			}
		})
		assert.Equal(t, before+len(p.Nodes), p.count(t, "lockfs_refused_calls_total", labels), asked.what)
	}
	p.requireNoEffect(t, func() {
		for _, address := range p.addresses() {
			heard, err := own.hears(address, protocolRaft, []byte{0})
			require.ErrorContains(t, err, "tls: ")
			require.Empty(t, heard)
		}
	})
	joiner := visitor{host: own.host}
	withIt := joiner.enrollBy(t, p.addresses(), parseToken(t, p.JoinToken(t, "client")), "spy.client.lockfs", nil)
	require.Empty(t, withIt.message.textOf(7), "the key that the authority's is sealed with")
}

// TestAMountIsNoOtherHost has a mount's certificate act for another host.
func TestAMountIsNoOtherHost(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	own := asIn(t, p.mount.Host, p.IdentityDir("m"))
	session := func(host string) uint64 {
		of := p.Nodes[0].AwaitSession(t, host, "a session of "+host, func(s []testcluster.Session) bool { return len(s) > 0 })
		id, err := strconv.ParseUint(of[0].ID, 16, 64)
		require.NoError(t, err, of[0].ID)
		return id
	}
	ofA := session("a")
	open := func(host string) message {
		return message{}.bytes(opOpenSession, message{}.text(1, host).text(2, "boot"))
	}
	create := func(name string) message {
		return message{}.bytes(opCreate, message{}.number(1, 1).text(2, name).number(3, 0o100644).number(5, 1).number(9, 1))
	}
	caller := message{}.text(1, "a") // root of the host a
	command := func(session, number uint64, op message) message {
		return message{}.bytes(executeCommand,
			message{}.number(commandSession, session).number(commandNumber, number).bytes(commandCaller, caller).bytes(commandOp, op))
	}
	p.requireNoEffect(t, func() {
		for _, asked := range []struct {
			what   string
			method byte
			m      message
		}{
			{"a session as another host", methodExecute, command(77, 0, open("a"))},
			{"a command in another host's session", methodExecute, command(ofA, 1<<40, create("stolen"))},
			{"another host's session taken over", methodExecute, command(ofA, 0, open("m"))},
			{"another host's session kept alive", methodKeepAlive, message{}.number(1, ofA)},
		} {
			said := own.ask(t, p.addresses(), asked.method, asked.m)
			assert.Equal(t, kindRefused, said.kind, "%s: %v", asked.what, said)
			assert.EqualValues(t, codeNotPermitted, said.message.numberOf(1), "%s: %v", asked.what, said)
			assert.Contains(t, said.message.textOf(2), `may not act for the host "a"`, asked.what)
		}
	})
	require.NoError(t, p.mount.Daemon.Stop()) // it would be another boot of the same host
	said := own.ask(t, p.addresses(), methodExecute, command(78, 0, open("m")))
	require.Zero(t, said.result(executeResult).numberOf(1), "%v", said)
	said = own.ask(t, p.addresses(), methodExecute, command(78, 1, create("forged.lock")))
	require.Zero(t, said.result(executeResult).numberOf(1), "%v", said)
	hosts.Eventually(t, "the event of the lock", func() (string, bool) {
		for _, e := range p.Nodes[0].Events(t) {
			if e.Name == "forged.lock" {
				require.Equal(t, "m", e.By.Host, "who made it, by his certificate")
				return "", true
			}
		}
		return "none", false
	})
}
