package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/backup"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/ids"
	"lockfs/raftstore/namespace"
)

// restored is the output of `lockfs restore --json`.
type restored struct {
	Backup       *backup.Header `json:"backup"`
	Data         string         `json:"data"`
	Index        uint64         `json:"index"`           // next fencing token
	Certificates string         `json:"certificates"`    // one of the constants below
	Clock        string         `json:"clock,omitempty"` // warning about the clock of this host
	Next         string         `json:"next"`            // command that starts the server
}

// Certificates of hosts after a restore.
const (
	sameAuthority = "same authority"
	newAuthority  = "new authority"
	noAuthority   = "none"
)

// nextSteps are the steps to add hosts after a restore.
var nextSteps = map[string]string{
	sameAuthority: "Mounts return with their certificates. Join tokens are void: create new ones for other servers (lockfs token create).",
	newAuthority: "The cluster has a new CA: all hosts need new join tokens (lockfs token create), even those with certificates. " +
		"With the seal key of an old server (--ca-key), hosts keep their certificates.",
	noAuthority: "The cluster has no certificates: all hosts need --insecure.",
}

func restoreCommand() *cobra.Command {
	var r cluster.Restoration
	var sealKey string
	var asJSON, force bool
	cmd := &cobra.Command{
		Use:   "restore FILE|- --data DIR --name NAME --addr HOST:PORT",
		Short: "Create the data directory of a new cluster from a backup",
		Long: `Create the data directory of a new cluster of one server from a backup. The
directory must be empty or missing. The last line printed is the command that
starts the server: lockfs up takes name and address from the directory. Other
servers join with empty directories. If the command is interrupted, run it again.

With --ca-key, the file ca.key of any server of the old cluster, the CA stays
and mounts come back with their certificates. Without it the cluster has a new
CA, and all hosts need new tokens. With --insecure there are no certificates.

Everything after the backup is lost, and programs that acquired a lock since then
still believe that they hold it: end these programs first. Fencing tokens, inode
numbers and event numbers continue above all earlier ones. For the fate of each
lock, see ` + "`lockfs help backup`" + `.`,
		Example: `  lockfs restore locks.backup --data /var/lib/lockfs --name a --addr 10.0.0.1:7420 --ca-key /root/ca.key
  lockfs up`,
		Args: cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.Dir == "" || r.Claim.Name == "" {
				return errors.New("give --data and --name of the new server; see `lockfs restore --help`")
			}
			over := cli.Waiting(cmd.ErrOrStderr(), "restoring %s", cli.Text(args[0]))
			done, err := restore(&r, args[0], sealKey, force, cmd.InOrStdin(), cli.Progress(cmd.ErrOrStderr()))
			over()
			if err != nil {
				return err
			}
			if done.Clock != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "note:", done.Clock)
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), done)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s has everything up to index %d, cluster time %s, and continues from %d.\n%s\nnow run: %s\n",
				cli.Text(r.Dir), done.Backup.Index, done.Backup.ClusterTime.Format(time.RFC3339), done.Index, nextSteps[done.Certificates], done.Next)
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Dir, "data", "", "data directory to create (required)")
	cmd.Flags().StringVar(&r.Claim.Name, "name", "", "name of the new server (required)")
	cmd.Flags().StringVar(&r.Claim.Address, "addr", cli.DefaultAddress,
		"address of the new server: its --advertise, or --addr; empty for a directory of lockfs dev (named dev)")
	cmd.Flags().StringVar(&sealKey, "ca-key", "", "`FILE` with the seal key of the old cluster: ca.key in the data directory of each of its servers")
	cmd.Flags().BoolVar(&r.Insecure, "insecure", false, insecureUsage)
	cmd.Flags().BoolVar(&force, "force", false, "restore in spite of a wrong state hash, or a clock behind the backup or its numbers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// restore restores a backup, and the CA with the seal key if a file is given.
func restore(
	r *cluster.Restoration, file, sealKey string, force bool, input io.Reader, progress func(done, all int64),
) (*restored, error) {
	if sealKey != "" {
		seal, err := identity.LoadSealKey(sealKey)
		if err != nil {
			return nil, err
		}
		r.Seal = &seal
	}
	header, state, err := readBackup(file, input, progress)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !state.Rehash() && !force {
		return nil, fmt.Errorf("%s: the state in it does not match its hash: check the memory and disk of node %s, and use another backup, or "+
			"restore this one anyway with --force", file, cli.Text(header.Node))
	}
	now, last := time.Now(), state.Time()
	if isBehind(now, last) && !force {
		return nil, fmt.Errorf("%s: %s; --force restores it anyway", file, skewWarning(now, last))
	}
	r.State, r.Term, r.PastClock = state, ids.Term(header.Term), force
	if err := r.Do(now); errors.Is(err, identity.ErrWrongSealKey) {
		return nil, fmt.Errorf("%s: %w: give ca.key of a server of that cluster from the time of the backup; `lockfs ca rotate` replaces it", sealKey, err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, adviseForce(err))
	}
	done := &restored{Backup: header, Data: r.Dir, Index: uint64(state.Index()), Certificates: newAuthority, Clock: skewWarning(now, last)}
	switch {
	case len(state.Authorities()) == 0:
		done.Certificates = noAuthority
	case r.Seal != nil:
		done.Certificates = sameAuthority
	}
	done.Next, err = startCommand(r, done.Certificates)
	return done, err
}

// startCommand returns the command that starts the server of a restored directory. `lockfs up` needs
// certificates.
func startCommand(r *cluster.Restoration, certificates string) (string, error) {
	dir, err := filepath.Abs(r.Dir)
	switch {
	case err != nil:
		return "", err
	case r.Claim.Address == "":
		return "lockfs dev --data " + cli.ShellWord(dir), nil
	case certificates == noAuthority:
		return fmt.Sprintf("lockfs server --insecure --name %s --data %s --addr %s --mount /locks",
			r.Claim.Name, cli.ShellWord(dir), cli.ShellWord(r.Claim.Address)), nil
	case dir != cli.DefaultData:
		return "lockfs up --data " + cli.ShellWord(dir), nil
	}
	return "lockfs up", nil
}

func readBackup(path string, input io.Reader, progress func(done, all int64)) (*backup.Header, *namespace.Namespace, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = file.Close() }()
		input = cli.ReadWithProgress(file, progress)
	}
	return backup.Read(input)
}
