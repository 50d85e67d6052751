package admin

import (
	"context"
	"fmt"
	"io"

	"lockfs/cluster"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// shownFits is how many names `lockfs rule set` lists; the rest is counted.
const shownFits = 20

// previewRule lists the names that are there and fit a rule, with what becomes of each, and answers how many the rule has removed.
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
				fmt.Fprintf(w, "lockfs: these names fit %s:\n", cli.Word(r.GetPattern()))
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
