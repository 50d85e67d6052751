package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"lockfs/cmd/lockfs/internal/cli"
)

// readyLine is what a mount prints once it can be used.
const readyLine = "lockfs: ready at "

func reportReady(w io.Writer, dir string) { fmt.Fprintln(w, readyLine+dir) }

// detach runs the same command line without --daemon in a session of its own, and returns once that has
// mounted. What it says until then, and why it fails, is shown here.
func detach(ctx context.Context, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--daemon") })
	child := exec.Command(program, args...)
	child.Args[0] = os.Args[0] // the name under which it was called counts
	child.Env = append(os.Environ(), cli.DetachedVariable+"=1", cli.UnattendedVariable+"=1", "LOCKFS_DAEMON=false")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- strings.HasPrefix(line, readyLine)
	}()
	select {
	case mounted := <-ready:
		if mounted {
			return child.Process.Release()
		}
		return errors.Join(errors.New("it was not mounted"), child.Wait())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.Process.Signal(syscall.SIGTERM), child.Wait())
	}
}
