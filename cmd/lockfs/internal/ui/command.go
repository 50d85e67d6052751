package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockfs/cluster/loopback"
	"lockfs/cmd/lockfs/internal/cli"
)

// Command returns lockfs ui.
func Command() *cobra.Command {
	p := new(plan)
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Open the live page in a browser",
		Long: `Open the live page with locks, events, hosts and members in a browser. Without a
desktop, the command prints an address. It works once, within two minutes, and
logs in the user who runs the command: you see the locks that you could stat and
read. Root on a server can also release locks and forget hosts.

The daemon of this host serves the page if it has a loopback address (lockfs
server --http-addr). Otherwise, for example on a host with a mount only, this
command serves the page itself until Ctrl-C, at the same port 7422 if it is free.

To open the page from another machine, run there the ssh command that is printed.`,
		Example: `  lockfs ui
  lockfs ui --print --listen 127.0.0.1:8080`,
		Args: cli.Exactly(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&p.print, "print", false, "only print the address, with notes on standard error")
	cmd.Flags().StringVar(&p.listen, "listen", "", "serve the page at this loopback address, also if the daemon serves one")
	cmd.Flags().StringVar(&p.socket, "socket", "", "socket of the daemon (default: the daemon of this host)")
	return cmd
}

type plan struct {
	print  bool
	listen string // empty: the daemon's address, or the default port
	socket string // empty: the first daemon with a reply
}

// invitation is a daemon's reply to POST /v1/login.
type invitation struct {
	URL  string `json:"url"`
	User uint32 `json:"user"`
}

// askTimeout is the time limit for a daemon's reply.
const askTimeout = 5 * time.Second

func (p *plan) run(ctx context.Context, out, notes io.Writer) error {
	socket, invited, err := p.find(ctx)
	if err != nil {
		return err
	}
	if p.listen == "" && isNear(invited.URL) {
		return p.show(out, notes, invited.URL)
	}
	listen := cmp.Or(p.listen, cli.DefaultHTTPAddress)
	listener, err := net.Listen("tcp", listen)
	if p.listen == "" && errors.Is(err, syscall.EADDRINUSE) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return err
	}
	address, is := listener.Addr().(*net.TCPAddr)
	if !is || !address.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("--listen %s: give a loopback address such as 127.0.0.1:8080, because the connection is not encrypted", listen), listener.Close())
	}
	door := newDoor(socket)
	server := &http.Server{Handler: loopback.Guard(door, door.name), ReadHeaderTimeout: askTimeout}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	if err := p.show(out, notes, door.invite(address.Port)); err != nil {
		return err
	}
	fmt.Fprintln(out, "End with Ctrl-C.")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// isNear reports whether an address is on loopback, where a browser needs no certificate.
func isNear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && (net.ParseIP(u.Hostname()).IsLoopback() || strings.HasSuffix(u.Hostname(), ".localhost"))
}

// find returns the first daemon with a page.
func (p *plan) find(ctx context.Context) (socket string, invited *invitation, err error) {
	sockets := []string{p.socket}
	if p.socket == "" {
		if sockets, err = cli.PageSockets(); err != nil {
			return "", nil, err
		}
	}
	err = errors.New("no lockfs daemon runs on this host: start one with `lockfs up`, or `lockfs dev` on a laptop")
	for _, socket := range sockets {
		var failed error
		if invited, failed = ask(ctx, socket); failed == nil {
			return socket, invited, nil
		}
		err = fmt.Errorf("no lockfs daemon answers: %w; see `lockfs doctor`", failed)
	}
	return "", nil, err
}

func ask(ctx context.Context, socket string) (*invitation, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lockfs/v1/login", nil)
	if err != nil {
		return nil, err
	}
	reply, err := cli.SocketClient(socket).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("socket %s answers %s", socket, reply.Status)
	}
	invited := new(invitation)
	return invited, json.NewDecoder(io.LimitReader(reply.Body, 1<<20)).Decode(invited)
}

// show opens an address on a desktop, and always prints it, with notes about its use.
func (p *plan) show(out, notes io.Writer, address string) error {
	_, err := fmt.Fprintln(out, address)
	fmt.Fprintf(notes, "This address works once, for %v minutes. To open it on another machine, first run there:\n    %s\n",
		linkTime.Minutes(), sshCommand(address))
	if p.print || os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return err
	}
	program, lookErr := exec.LookPath("xdg-open")
	if lookErr != nil {
		return err
	}
	// All users of the host can read the arguments of a program, so the browser gets a private file.
	file, failed := writeRedirect(address)
	if failed == nil {
		failed = exec.Command(program, file).Start()
	}
	if failed != nil {
		fmt.Fprintln(out, "The browser was not started:", failed)
	}
	return err
}

// sshCommand returns the command that makes the port of an address reachable on another machine.
func sshCommand(address string) string {
	port := ""
	if u, err := url.Parse(address); err == nil {
		port = u.Port()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	return fmt.Sprintf("ssh -L %[1]s:127.0.0.1:%[1]s %[2]s", port, host)
}

// writeRedirect writes a page with a redirect to an address, and returns its path. The address works once,
// for two minutes. The file is deleted at logout.
func writeRedirect(address string) (string, error) {
	dir, err := os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "lockfs-ui-") // mode 0700
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "open.html")
	target := html.EscapeString(address)
	content := `<!DOCTYPE html><title>lockfs</title><meta http-equiv="refresh" content="0; url=` + target + `"><a href="` + target + `">Go on to lockfs</a>`
	return path, os.WriteFile(path, []byte(content), 0o600)
}
