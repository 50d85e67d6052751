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

// readyLine is the output of a mount at its start.
const readyLine = "lockfs: ready at "

func reportReady(w io.Writer, dir string) { fmt.Fprintln(w, readyLine+dir) }

// detach runs the command line without --daemon in a session of its own, and returns after the mount. It
// copies the output and the error until then.
func detach(ctx context.Context, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "--daemon") })
	child := exec.Command(program, args...)
	child.Args[0] = os.Args[0] // mount(8) and lockfs have different command lines
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
		return errors.Join(errors.New("the mount has failed"), child.Wait())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), child.Process.Signal(syscall.SIGTERM), child.Wait())
	}
}
