package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"lockfs/cmd/lockfs/internal/cli"
)

// renewalShare is the fraction of a certificate's lifetime after which a missing renewal is a fault.
const renewalShare = 6

func lookAtCertificates(_ context.Context, h *host) []Finding {
	var found []Finding
	for _, dir := range h.identities {
		path := filepath.Join(dir, cli.LeafFile)
		leaf, err := cli.ReadLeaf(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, fs.ErrPermission):
			found = append(found, unknown("run lockfs doctor as root", "%s cannot be read by uid %d", path, h.uid))
		case err != nil:
			found = append(found, failed("enrol this host again", "%s: %v", path, err))
		default:
			found = append(found, judgeLeaf(path, leaf, h.now()))
		}
	}
	if found == nil {
		return one(ok("this host has no certificate"))
	}
	return found
}

func judgeLeaf(path string, leaf *x509.Certificate, now time.Time) Finding {
	const advice = "lockfs renews it while it reaches a server: see the daemon's log"
	left := leaf.NotAfter.Sub(now)
	until := leaf.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case left <= 0:
		return failed("enrol this host again", "%s has expired at %s", path, until)
	case now.Before(leaf.NotBefore):
		return failed("set the clock", "%s is not valid before %s", path, leaf.NotBefore.UTC().Format(time.RFC3339))
	case left < leaf.NotAfter.Sub(leaf.NotBefore)/renewalShare:
		return warning(advice, "%s expires at %s", path, until)
	}
	return ok("%s is valid until %s", path, until)
}
