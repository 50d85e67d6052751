package trust

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"lockfs/raftstore/storepb"
)

// PutToken adds a join token. made: it was new.
func (t *Table) PutToken(op *storepb.PutToken) (result *storepb.Result, made bool) {
	token, _ := proto.Clone(op.GetToken()).(*storepb.JoinToken)
	if token == nil {
		token = new(storepb.JoinToken)
	}
	token.Made = t.now
	record := &storepb.TokenRecord{Token: token, SecretHash: op.GetSecretHash()}
	wrong := checkToken(record)
	switch {
	case wrong != "":
	case token.GetUses() == 0:
		wrong = "a token needs a number of uses"
	case token.GetExpires() <= t.now:
		wrong = "a token needs a time at which it expires that is still to come"
	}
	if wrong != "" {
		return refuse(storepb.Code_INVALID, wrong), false
	}
	if known, found := t.tokens.Get(string(token.GetId())); found {
		if !matches(known, op.GetSecretHash()) {
			return refuse(storepb.Code_EXISTS, "there is a token of that id with another secret"), false
		}
		return answerToken(known), false
	}
	if t.tokens.Len() >= MaxTokens {
		return refuse(storepb.Code_NO_SPACE, "there are too many join tokens; see `lockfs token list`"), false
	}
	t.putToken(record)
	return answerToken(record), true
}

// DeleteToken deletes a token and returns it.
func (t *Table) DeleteToken(id []byte) *storepb.Result {
	record, found := t.tokens.Delete(string(id))
	if !found {
		return refuse(storepb.Code_NOT_FOUND, "there is no such join token; it may have expired; see `lockfs token list`")
	}
	t.findNextExpiry()
	return answerToken(record)
}

// Tokens returns the unexpired tokens in the order of their ids, used-up ones included.
func (t *Table) Tokens() []*storepb.JoinToken {
	tokens := make([]*storepb.JoinToken, 0, t.tokens.Len())
	t.tokens.Scan(func(_ string, record *storepb.TokenRecord) bool {
		tokens = append(tokens, record.GetToken())
		return true
	})
	return tokens
}

// redeemable returns the token of a joining host, or the refusal.
func (t *Table) redeemable(op *storepb.AdmitHost) (*storepb.TokenRecord, *storepb.Result) {
	record, found := t.tokens.Get(string(op.GetTokenId()))
	token := record.GetToken()
	wrong := ""
	switch {
	case !found:
		wrong = "the join token is not known: it has expired, was revoked, or is of another cluster; make a new one with `lockfs token create`"
	case !matches(record, op.GetSecretHash()):
		wrong = "the secret of the join token is wrong"
	case token.GetUses() == 0:
		wrong = "the join token is used up; make a new one with `lockfs token create`"
	case token.GetRole() != op.GetHost().GetRole():
		wrong = fmt.Sprintf("the join token is for a %s", roleName(token.GetRole()))
	case token.GetHost() != "" && token.GetHost() != op.GetHost().GetName():
		wrong = fmt.Sprintf("the join token is for the host %q", token.GetHost())
	}
	if wrong != "" {
		return nil, refuse(storepb.Code_NOT_PERMITTED, wrong)
	}
	return record, nil
}

func (t *Table) redeem(record *storepb.TokenRecord) {
	used, _ := proto.Clone(record).(*storepb.TokenRecord)
	used.Token.Uses--
	t.tokens.Set(string(used.GetToken().GetId()), used)
}

func (t *Table) putToken(record *storepb.TokenRecord) {
	t.tokens.Set(string(record.GetToken().GetId()), record)
	t.nextExpiry = min(t.nextExpiry, record.GetToken().GetExpires())
}

func (t *Table) dropExpired() {
	for _, token := range t.Tokens() {
		if token.GetExpires() <= t.now {
			t.tokens.Delete(string(token.GetId()))
		}
	}
	t.findNextExpiry()
}

func (t *Table) findNextExpiry() {
	t.nextExpiry = math.MaxInt64
	for _, token := range t.Tokens() {
		t.nextExpiry = min(t.nextExpiry, token.GetExpires())
	}
}

func matches(record *storepb.TokenRecord, secretHash []byte) bool {
	return subtle.ConstantTimeCompare(record.GetSecretHash(), secretHash) == 1
}

func answerToken(record *storepb.TokenRecord) *storepb.Result {
	return &storepb.Result{Tokens: []*storepb.JoinToken{record.GetToken()}}
}

func checkToken(record *storepb.TokenRecord) string {
	token := record.GetToken()
	switch {
	case len(token.GetId()) == 0 || len(token.GetId()) > maxTokenID:
		return fmt.Sprintf("the id of a token has 1 to %d bytes", maxTokenID)
	case !isRole(token.GetRole()):
		return "a token is for a server or for a client"
	case len(token.GetHost()) > maxName:
		return fmt.Sprintf("the name of a host has at most %d bytes", maxName)
	case len(record.GetSecretHash()) != sha256.Size:
		return "the hash of a token's secret is no SHA-256"
	}
	return ""
}
