package namespace

import (
	"fmt"
	"strings"
	"time"

	"lockfs/raftstore/storepb"
)

// changeTrust applies changes of trust, which only the leader proposes.
func (ns *Namespace) changeTrust(by *storepb.Caller, op *storepb.Op) *storepb.Result {
	switch op := op.GetOp().(type) {
	case *storepb.Op_SetCluster:
		return ns.setCluster(op.SetCluster.GetId())
	case *storepb.Op_AddAuthority:
		return ns.addAuthority(by, op.AddAuthority)
	case *storepb.Op_DropAuthority:
		return ns.dropAuthority(by, op.DropAuthority.GetFingerprint())
	case *storepb.Op_PutToken:
		return ns.putToken(by, op.PutToken)
	case *storepb.Op_DeleteToken:
		return ns.deleteToken(by, op.DeleteToken.GetId())
	case *storepb.Op_AdmitHost:
		return ns.admitHost(by, op.AdmitHost)
	case *storepb.Op_RevokeHost:
		return ns.revokeHost(by, op.RevokeHost.GetName())
	case *storepb.Op_NoteRefusal:
		return ns.noteRefusal(op.NoteRefusal)
	default:
		return fail(storepb.Code_UNKNOWN_COMMAND)
	}
}

func (ns *Namespace) setCluster(id string) *storepb.Result {
	before := ns.trust.Cluster()
	result := ns.trust.SetCluster(id)
	if now := ns.trust.Cluster(); now != before {
		ns.emit(&storepb.Event{Event: eventClusterBegun, Cluster: now})
	}
	return result
}

func (ns *Namespace) addAuthority(by *storepb.Caller, op *storepb.AddAuthority) *storepb.Result {
	result, added := ns.trust.AddAuthority(op)
	if added {
		ns.emitAction(by, eventAuthorityAdded, "", fmt.Sprintf("authority %x", result.GetAuthorities()[0].GetFingerprint()))
	}
	return result
}

func (ns *Namespace) dropAuthority(by *storepb.Caller, fingerprint []byte) *storepb.Result {
	result := ns.trust.DropAuthority(fingerprint)
	if result.GetCode() == storepb.Code_OK {
		ns.emitAction(by, eventAuthorityDropped, "", fmt.Sprintf("authority %x", fingerprint))
	}
	return result
}

func (ns *Namespace) putToken(by *storepb.Caller, op *storepb.PutToken) *storepb.Result {
	result, made := ns.trust.PutToken(op)
	if made {
		token := result.GetTokens()[0]
		ns.emitAction(by, eventTokenCreated, token.GetHost(), describeToken(token))
	}
	return result
}

func (ns *Namespace) deleteToken(by *storepb.Caller, id []byte) *storepb.Result {
	result := ns.trust.DeleteToken(id)
	if result.GetCode() == storepb.Code_OK {
		token := result.GetTokens()[0]
		ns.emitAction(by, eventTokenRevoked, token.GetHost(), fmt.Sprintf("token %x", token.GetId()))
	}
	return result
}

func (ns *Namespace) admitHost(by *storepb.Caller, op *storepb.AdmitHost) *storepb.Result {
	result, joined := ns.trust.Admit(op)
	if joined {
		host := result.GetAdmissions()[0]
		ns.emitAction(by, eventHostJoined, host.GetName(), describeAdmission(host))
	}
	return result
}

func (ns *Namespace) revokeHost(by *storepb.Caller, name string) *storepb.Result {
	result, revoked := ns.trust.Revoke(name)
	if revoked {
		ns.emitAction(by, eventHostRevoked, name, "")
	}
	return result
}

// maxRefusal bounds the reason in the event of a refusal, in bytes: a stranger may have chosen it.
const maxRefusal = 500

func (ns *Namespace) noteRefusal(op *storepb.NoteRefusal) *storepb.Result {
	ns.emitAction(nil, eventJoinRefused, cut(op.GetName(), MaxName), fmt.Sprintf("from %s: %s", cut(op.GetAddress(), MaxName), cut(op.GetReason(), maxRefusal)))
	return ok()
}

func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

func describeToken(token *storepb.JoinToken) string {
	text := fmt.Sprintf("token %x for a %s, uses %d, until %s", token.GetId(), strings.ToLower(token.GetRole().String()), token.GetUses(),
		time.Unix(0, token.GetExpires()).UTC().Format(time.RFC3339))
	if token.GetSquashRoot() {
		text += ", root squashed"
	}
	return text
}

func describeAdmission(host *storepb.Admission) string {
	text := "as the first server"
	if len(host.GetTokenId()) > 0 {
		text = fmt.Sprintf("as a %s, with token %x", strings.ToLower(host.GetRole().String()), host.GetTokenId())
	}
	if host.GetSquashRoot() {
		text += ", root squashed"
	}
	return text
}

// describeRule returns the rule as arguments of `lockfs rule set`.
func describeRule(rule *storepb.Rule) string {
	text := fmt.Sprintf("rule %q", rule.GetPattern())
	for _, word := range []struct{ name, value string }{
		{"format", rule.GetFormat()}, {"guard", rule.GetGuard()}, {"on-stale", rule.GetOnStale()}, {"holder", rule.GetHolder()},
	} {
		if word.value != "" {
			text += fmt.Sprintf(" %s=%s", word.name, word.value)
		}
	}
	for _, span := range []struct {
		name  string
		value int64
	}{{"stale-after", rule.GetStaleAfter()}, {"host-timeout", rule.GetHostTimeout()}} {
		if span.value != 0 {
			text += fmt.Sprintf(" %s=%v", span.name, time.Duration(span.value))
		}
	}
	if rule.GetAnyFile() {
		text += " any-file"
	}
	return text
}
