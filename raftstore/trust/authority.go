package trust

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
)

// AddAuthority makes an authority the signing one. added: it was new.
func (t *Table) AddAuthority(op *storepb.AddAuthority) (result *storepb.Result, added bool) {
	fingerprint := sha256.Sum256(op.GetCertificate())
	record := &storepb.AuthorityRecord{
		Authority: &storepb.Authority{
			Fingerprint: fingerprint[:], Certificate: op.GetCertificate(), CrossCertificate: op.GetCrossCertificate(), Added: t.now,
		},
		SealedKey: op.GetSealedKey(), AddedIndex: uint64(t.index), Shares: op.GetShares(),
	}
	if wrong := checkAuthority(record); wrong != "" {
		return refuse(storepb.Code_INVALID, wrong), false
	}
	if known := t.authority(fingerprint[:]); known != nil {
		record.Authority.Added, record.AddedIndex = known.GetAuthority().GetAdded(), known.GetAddedIndex()
		t.authorities.Set(ids.Index(known.GetAddedIndex()), record)
		return answerAuthority(record), false
	}
	if t.authorities.Len() >= MaxAuthorities {
		return refuse(storepb.Code_NO_SPACE, "there are too many authorities; wait until hosts have renewed their certificates and old ones are dropped"), false
	}
	t.authorities.Set(t.index, record)
	return answerAuthority(record), true
}

// DropAuthority ends the trust in an unneeded authority. Authorities are dropped in the order of their
// addition: each vouches for the next one, so a host that trusts an old one needs all later ones.
func (t *Table) DropAuthority(fingerprint []byte) *storepb.Result {
	known := t.authority(fingerprint)
	switch {
	case known == nil:
		return refuse(storepb.Code_NOT_FOUND, "there is no such authority")
	case known == t.Signing():
		return refuse(storepb.Code_BUSY, "it is the authority that signs; add another one first")
	}
	if needed := t.knownBy(fingerprint, t.now); needed > 0 {
		return refuse(storepb.Code_BUSY, fmt.Sprintf("%d hosts have a certificate of it; wait until they have renewed it, or revoke them", needed))
	}
	if _, oldest, _ := t.authorities.Min(); known != oldest {
		return refuse(storepb.Code_BUSY, "an authority before it is still needed")
	}
	t.authorities.Delete(ids.Index(known.GetAddedIndex()))
	t.lastRevocation = t.index
	return new(storepb.Result)
}

// Signing returns the signing authority with its sealed key, or nil.
func (t *Table) Signing() *storepb.AuthorityRecord {
	_, newest, _ := t.authorities.Max()
	return newest
}

// Authorities returns the trusted authorities of host certificates, the signing one first.
func (t *Table) Authorities() []*storepb.Authority {
	var all []*storepb.Authority
	t.authorities.Reverse(func(_ ids.Index, record *storepb.AuthorityRecord) bool {
		all = append(all, record.GetAuthority())
		return true
	})
	return all
}

// Obsolete returns the fingerprints of the authorities DropAuthority would drop at a time, one after the
// other. With more than one authority it visits every host.
func (t *Table) Obsolete(now int64) [][]byte {
	var unneeded [][]byte
	signing := t.Signing()
	t.authorities.Scan(func(_ ids.Index, record *storepb.AuthorityRecord) bool {
		fingerprint := record.GetAuthority().GetFingerprint()
		if record == signing || t.knownBy(fingerprint, now) > 0 {
			return false
		}
		unneeded = append(unneeded, fingerprint)
		return true
	})
	return unneeded
}

// knownBy counts the hosts with a certificate of an authority that is valid at a time.
func (t *Table) knownBy(fingerprint []byte, now int64) int {
	count := 0
	t.hosts.Scan(func(_ string, host *storepb.Admission) bool {
		if isLive(host) && host.GetNotAfter() > now && bytes.Equal(host.GetAuthority(), fingerprint) {
			count++
		}
		return true
	})
	return count
}

func (t *Table) authority(fingerprint []byte) (found *storepb.AuthorityRecord) {
	t.authorities.Scan(func(_ ids.Index, record *storepb.AuthorityRecord) bool {
		if bytes.Equal(record.GetAuthority().GetFingerprint(), fingerprint) {
			found = record
		}
		return found == nil
	})
	return found
}

func answerAuthority(record *storepb.AuthorityRecord) *storepb.Result {
	return &storepb.Result{Authorities: []*storepb.Authority{record.GetAuthority()}}
}

func checkAuthority(record *storepb.AuthorityRecord) string {
	authority := record.GetAuthority()
	fingerprint := sha256.Sum256(authority.GetCertificate())
	switch {
	case len(authority.GetCertificate()) == 0 || len(record.GetSealedKey()) == 0:
		return "an authority needs a certificate and a key"
	case !bytes.Equal(fingerprint[:], authority.GetFingerprint()):
		return "the fingerprint of an authority is not that of its certificate"
	case max(len(authority.GetCertificate()), len(authority.GetCrossCertificate()), len(record.GetSealedKey())) > maxCertificate:
		return fmt.Sprintf("a certificate or a key has more than %d bytes", maxCertificate)
	case len(record.GetShares()) > MaxShares:
		return fmt.Sprintf("there are more than %d shares of a seal key", MaxShares)
	}
	for _, share := range record.GetShares() {
		if len(share.GetKeyHash()) != sha256.Size || len(share.GetShare()) == 0 || len(share.GetShare()) > maxShare {
			return fmt.Sprintf("the share of a seal key is for no key, or has not 1 to %d bytes", maxShare)
		}
	}
	return ""
}
