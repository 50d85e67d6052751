package admin

import (
	"context"
	"fmt"
	"io"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// shownFits is the number of names that `lockfs rule set` lists before it only counts.
const shownFits = 20

// previewRule lists the existing names matching a rule with the rule's effect on each, and returns how many
// the rule removes.
func previewRule(ctx context.Context, admin *cluster.Admin, r *storepb.Rule, w io.Writer) (removed int, err error) {
	fits := 0
	for next := (&storepb.PreviewRule{Rule: r, Viewer: cli.Self()}); ; {
		result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_PreviewRule{PreviewRule: next}})
		if err != nil {
			return 0, err
		}
		page := result.GetLocks()
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			if fits++; fits == 1 {
				fmt.Fprintf(w, "lockfs: these names match %s:\n", cli.Word(r.GetPattern()))
			}
			if l.GetRemoved() {
				removed++
			}
			if fits <= shownFits || l.GetRemoved() && removed <= shownFits {
				fmt.Fprintf(w, "  %s %s\n", cli.Word(string(l.GetPath())), cli.Text(l.GetOutcome()))
			}
		}
		last := page[len(page)-1]
		next.AfterParent, next.AfterName = last.GetParent(), last.GetName()
	}
	if fits > shownFits {
		fmt.Fprintf(w, "  %d names in all\n", fits)
	}
	return removed, nil
}
