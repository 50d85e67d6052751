package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster"
	"lockfs/cluster/identity"
	"lockfs/cmd/lockfs/internal/cli"
	"lockfs/raftstore/storepb"
)

// TokenPlan are the properties of a new join token.
type TokenPlan struct {
	Role       identity.Role
	Host       string        // the only host that may use the token, even with another key; empty: any new host
	TTL        time.Duration // by cluster time
	Uses       uint32
	SquashRoot bool // on a client host
}

// Token is an element of the output of `lockfs token list --json`. The output of `lockfs token create --json`
// also has the token itself.
type Token struct {
	ID         string    `json:"id"`
	Role       string    `json:"role"`
	Host       string    `json:"host,omitempty"`
	Uses       uint32    `json:"uses"`    // left
	Expires    time.Time `json:"expires"` // cluster time
	SquashRoot bool      `json:"squash_root,omitempty"`
	Token      string    `json:"token,omitempty"`
}

const needsAdministrator = `For root on a server, or with a server's identity.`

func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Create, list or revoke join tokens"}
	return cli.Parent(cmd, tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand())
}

func tokenCreateCommand() *cobra.Command {
	var (
		flags cli.ClusterFlags
		plan  TokenPlan
		role  string
	)
	cmd := &cobra.Command{
		Use:   "create --role server|client",
		Short: "Create a join token",
		Long: `Create a join token and print it in one line. Give it to lockfs up on the new
host. By default it is valid for one host and one hour. A client mounts the
directory and works with its files. A server also holds a copy of the state and
administers the cluster.

Anyone with the token can join: handle it like a password. The cluster stores
only a hash and cannot print it again.

With --host, the token is valid for the host of that name only; this also lets
in a host that was revoked or lost its key. With --squash-root, root on the host
has no rights of root there.

` + needsAdministrator,
		Example: `  lockfs token create --role client --host build-7
  lockfs token create --role client --uses 50 --ttl 24h
  lockfs token create --role server | ssh c lockfs up -`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if plan.Role, err = identity.ParseRole(role); err != nil {
				return fmt.Errorf("--role: %w", err)
			}
			if err := plan.check(); err != nil {
				return err
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				made, err := CreateToken(ctx, admin, &plan)
				if err != nil {
					return err
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), made)
				}
				fmt.Fprintln(cmd.OutOrStdout(), made.Token)
				if cli.IsTerminal(cmd.OutOrStdout()) {
					fmt.Fprintf(cmd.ErrOrStderr(), "Valid for %s. On the new host: lockfs up TOKEN\n", made.describe())
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "role of the host: server or client (required)")
	cmd.Flags().StringVar(&plan.Host, "host", "", "name of the only host for the token")
	cmd.Flags().DurationVar(&plan.TTL, "ttl", time.Hour, "validity of the token")
	cmd.Flags().Uint32Var(&plan.Uses, "uses", 1, "number of hosts that may use the token")
	cmd.Flags().BoolVar(&plan.SquashRoot, "squash-root", false, "treat root of the host as uid 65534")
	flags.Add(cmd.Flags())
	return cmd
}

// check refuses contradictory properties.
func (p *TokenPlan) check() error {
	switch {
	case p.Host != "" && !identity.ValidHost(p.Host):
		_, err := identity.ParseName(p.Role, p.Host)
		return fmt.Errorf("--host: %w", err)
	case p.Host != "" && p.Uses > 1:
		return errors.New("--host names one host: leave --uses out")
	case p.Uses == 0:
		return errors.New("--uses must be at least 1")
	case p.TTL <= 0:
		return errors.New("--ttl must be positive")
	case p.SquashRoot && p.Role == identity.Server:
		return errors.New("--squash-root is for clients: root on a server administers the cluster")
	}
	return nil
}

// CreateToken creates a token with the addresses of the current members.
func CreateToken(ctx context.Context, admin *cluster.Admin, plan *TokenPlan) (*Token, error) {
	members, err := admin.Members(ctx)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, member := range members {
		if address := member.GetAddress(); address != "" && !member.Joining {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 {
		return nil, errors.New("no host can join this cluster because its only node has no address: start that one with --addr or --advertise")
	}
	slices.Sort(addresses)
	fingerprint, err := signing(ctx, admin)
	if err != nil {
		return nil, err
	}
	nodes, err := admin.Status(ctx, false)
	if err != nil {
		return nil, err
	}
	now := latestTime(nodes)
	secret := identity.NewToken(plan.Role, addresses[:min(len(addresses), mostAddresses)], fingerprint, now)
	text, err := secret.Text()
	if err != nil {
		return nil, err
	}
	record := &storepb.JoinToken{
		Id: secret.ID[:], Role: storepb.Role(plan.Role), Host: plan.Host, Uses: plan.Uses,
		Expires: now.Add(min(plan.TTL, math.MaxInt64/4)).UnixNano(), SquashRoot: plan.SquashRoot,
	}
	hash := secret.Secret.Hash()
	err = change(ctx, admin, &storepb.Op{Op: &storepb.Op_PutToken{PutToken: &storepb.PutToken{Token: record, SecretHash: hash[:]}}})
	made := describeToken(record)
	made.Token = text
	return &made, err
}

// mostAddresses limits the addresses in a token, which grows with them: one reachable address is enough.
const mostAddresses = 5

func describeToken(t *storepb.JoinToken) Token {
	return Token{
		ID: fmt.Sprintf("%x", t.GetId()), Role: identity.Role(t.GetRole()).String(), Host: t.GetHost(), Uses: t.GetUses(),
		Expires: time.Unix(0, t.GetExpires()).UTC(), SquashRoot: t.GetSquashRoot(),
	}
}

// describe describes the hosts and the time for which a token is valid.
func (t *Token) describe() string {
	what := fmt.Sprintf("%d %ss", t.Uses, t.Role)
	switch {
	case t.Host != "":
		what = fmt.Sprintf("the %s %s", t.Role, cli.Word(t.Host))
	case t.Uses == 1:
		what = "one " + t.Role
	}
	return what + " until " + t.Expires.Format(time.RFC3339)
}

func tokenListCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List usable join tokens",
		Long: `List usable join tokens. The list has no secrets: the cluster stores only a hash
of each.

` + needsAdministrator,
		Example: "  lockfs token list",
		Args:    cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				tokens, err := ListTokens(ctx, admin)
				if err != nil {
					return err
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), tokens)
				}
				return printTokens(cmd.OutOrStdout(), tokens)
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}

// ListTokens returns the usable tokens without secrets.
func ListTokens(ctx context.Context, admin *cluster.Admin) ([]Token, error) {
	result, err := admin.Query(ctx, &storepb.Query{Query: &storepb.Query_ListTokens{ListTokens: &storepb.ListTokens{}}})
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(result.GetTokens()))
	for i, t := range result.GetTokens() {
		tokens[i] = describeToken(t)
	}
	return tokens, nil
}

func printTokens(w io.Writer, tokens []Token) error {
	table := cli.NewTable(w)
	fmt.Fprintln(table, "ID\tROLE\tHOST\tUSES\tEXPIRES\tROOT")
	for _, t := range tokens {
		root := "root"
		if t.SquashRoot {
			root = "nobody"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", t.ID, t.Role, orDash(t.Host), t.Uses, t.Expires.Format(time.RFC3339), root)
	}
	return table.Flush()
}

func tokenRevokeCommand() *cobra.Command {
	var flags cli.ClusterFlags
	cmd := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a join token",
		Long: `Revoke a join token by its ID from lockfs token list. Hosts that enrolled with
it stay: see lockfs host revoke.

` + needsAdministrator,
		Example: "  lockfs token revoke 9f2c41d07a6be815",
		Args:    cli.Exactly(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := identity.ParseTokenID(args[0])
			if err != nil {
				return fmt.Errorf("%w; see `lockfs token list`", err)
			}
			return withAdmin(cmd.Context(), &flags, func(ctx context.Context, admin *cluster.Admin) error {
				err := change(ctx, admin, &storepb.Op{Op: &storepb.Op_DeleteToken{DeleteToken: &storepb.DeleteToken{Id: id[:]}}})
				if err != nil {
					return fmt.Errorf("revoke token %s: %w", id, err)
				}
				if flags.JSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]string{"revoked": id.String()})
				}
				fmt.Fprintf(cmd.OutOrStdout(), "revoked token %s\n", id)
				return nil
			})
		},
	}
	flags.Add(cmd.Flags())
	return cmd
}
