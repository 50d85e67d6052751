package namespace

import (
	"fmt"
	"testing"

	"lockfs/raftstore/ids"
	"lockfs/raftstore/storepb"
	"lockfs/test/costs"
)

// costDriver gives commands to a namespace.
type costDriver struct {
	t     testing.TB
	ns    *Namespace
	index uint64
}

func newCostDriver(t testing.TB) *costDriver {
	d := &costDriver{t: t, ns: New()}
	d.do(opOf(&storepb.SetLimits{MaxBytes: 1 << 40, MaxSessions: 1 << 20, MaxInodes: 1 << 20}))
	return d
}

func (d *costDriver) command(session uint64, op *storepb.Op) *storepb.Attr {
	d.index++
	result := d.ns.Apply(ids.Index(d.index), &storepb.Command{Session: session, Time: int64(d.index), Op: op, Caller: &storepb.Caller{Host: "host-1"}})
	if result.GetCode() != storepb.Code_OK {
		d.t.Fatalf("%v: %v", op, result)
	}
	return result.GetAttr()
}

func (d *costDriver) do(op *storepb.Op) *storepb.Attr { return d.command(0, op) }

// lock creates a lock.
func (d *costDriver) lock(dir uint64, name string) *storepb.Attr {
	return d.do(opOf(&storepb.Create{Parent: dir, Name: []byte(name), Mode: someFile, Exclusive: true, Says: storepb.NameSays_SAYS_LOCK}))
}

// cycle creates, writes, renames and removes a lock.
func (d *costDriver) cycle(dir uint64) {
	made := d.lock(dir, "cycle.lock")
	d.do(opOf(&storepb.SetContent{Ino: made.GetIno(), IfVersion: made.GetVersion(), Content: []byte("holder"), Facts: someFacts(0)}))
	d.do(opOf(&storepb.Rename{Parent: dir, Name: []byte("cycle.lock"), NewParent: dir, NewName: []byte("renamed.lock")}))
	d.do(opOf(&storepb.Unlink{Parent: dir, Name: []byte("renamed.lock")}))
}

// stateCosts are commands, each beside so much of one thing that a user can pile up.
var stateCosts = []struct {
	name   string
	pileUp func(d *costDriver, n int)
	do     func(d *costDriver)
}{
	{"names in the directory",
		func(d *costDriver, n int) {
			for i := range n {
				d.lock(RootIno, fmt.Sprint("held-", i))
			}
		},
		func(d *costDriver) { d.cycle(RootIno) }},
	{"locks with facts, of which one is renewed",
		func(d *costDriver, n int) {
			for i := range n {
				made := d.lock(RootIno, fmt.Sprint("held-", i))
				d.do(opOf(&storepb.SetContent{Ino: made.GetIno(), IfVersion: made.GetVersion(), Facts: someFacts(i)}))
			}
		},
		func(d *costDriver) {
			attr := d.ns.Query(getAttr(2)).GetAttr()
			d.do(opOf(&storepb.SetContent{Ino: 2, IfVersion: attr.GetVersion(), Facts: someFacts(0)}))
		}},
	{"directories",
		func(d *costDriver, n int) {
			for i := range n {
				d.do(opOf(&storepb.Create{Parent: RootIno, Name: fmt.Append(nil, i), Mode: someDir}))
			}
		},
		func(d *costDriver) {
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("7"), NewParent: RootIno, NewName: []byte("new")}))
			d.do(opOf(&storepb.Rename{Parent: RootIno, Name: []byte("new"), NewParent: RootIno, NewName: []byte("7")}))
			d.cycle(8)
		}},
	{"extended attributes",
		func(d *costDriver, n int) {
			for i := range n {
				made := d.lock(RootIno, fmt.Sprint("held-", i))
				d.do(opOf(&storepb.SetXattr{Ino: made.GetIno(), Name: []byte("user.x"), Value: []byte("value")}))
			}
		},
		func(d *costDriver) {
			d.do(opOf(&storepb.SetXattr{Ino: 2, Name: []byte("user.x"), Value: fmt.Append(nil, d.index)}))
		}},
	{"sessions",
		func(d *costDriver, n int) {
			for i := range n {
				d.command(uint64(i+1), opOf(&storepb.OpenSession{Host: fmt.Sprint("host-", i/100)}))
			}
		},
		func(d *costDriver) {
			d.command(1<<40, opOf(&storepb.OpenSession{Host: "another"}))
			d.command(1<<40, opOf(&storepb.CloseSession{}))
			d.cycle(RootIno)
		}},
	{"events",
		func(d *costDriver, n int) {
			for d.ns.LastEvent() < uint64(n) {
				d.cycle(RootIno)
			}
		},
		func(d *costDriver) { d.cycle(RootIno) }},
}

// TestCostsDoNotGrow measures each command beside 1,000 things and beside many more.
func TestCostsDoNotGrow(t *testing.T) {
	for _, row := range stateCosts {
		t.Run(row.name, func(t *testing.T) {
			costs.RequireBounded(t, 20, func(pile int) func() {
				d := newCostDriver(t)
				row.pileUp(d, pile)
				return func() { row.do(d) }
			})
		})
	}
}
