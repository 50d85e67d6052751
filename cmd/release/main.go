// Command release writes a release of lockfs into one directory: a static program for each architecture,
// packages for Debian and for systems with rpm, an OCI image as a file, the lists of modules (SBOM), and
// checksums.
//
//	.ci/release --version 1.2.3 --out /tmp/release
//
// With the same Go, two runs on one commit write the same bytes on any machine. All dates are the date of the
// commit, or SOURCE_DATE_EPOCH, and no file names the build machine. The program itself writes the other
// files of the packages (lockfs docs, lockfs completion), so they always match it.
//
// It is a module of its own: lockfs does not depend on the tools for packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	var r release
	archs := flag.String("arch", "amd64,arm64", "architectures, by comma")
	flag.StringVar(&r.version, "version", "", "what it is called, as 1.2.3 (default: of the commit)")
	flag.StringVar(&r.built, "built", "", "a program for this machine that is taken instead of building any: for tests of the packages")
	flag.StringVar(&r.out, "out", "../../dist", "directory for what is made, which must be empty or not be there")
	flag.Parse()
	if r.archs = strings.Split(*archs, ","); r.built != "" {
		r.archs = []string{runtime.GOARCH}
	}
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one run of the command.
type release struct {
	version string
	date    time.Time // the date in all files
	archs   []string
	built   string // a program to use; empty: build one
	out     string
	extras  string // directory of the other files of the packages
}

func (r *release) run() error {
	if left, err := os.ReadDir(r.out); err == nil && len(left) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	for _, arch := range r.archs {
		if err := r.build(r.program(arch), arch); err != nil {
			return err
		}
		if err := r.writeSBOM(arch); err != nil {
			return err
		}
	}
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	r.extras = scratch
	if err := r.writeExtras(); err != nil {
		return err
	}
	for _, arch := range r.archs {
		if err := r.writePackages(arch); err != nil {
			return err
		}
	}
	if err := r.writeImage(); err != nil {
		return err
	}
	return r.writeSums()
}

// identify sets version and date: those of the commit, unless given.
func (r *release) identify() error {
	commit, err := output("git", "log", "-1", "--format=%ct %h")
	if err != nil {
		return err
	}
	seconds, hash, _ := strings.Cut(commit, " ")
	if given := os.Getenv("SOURCE_DATE_EPOCH"); given != "" {
		seconds = given
	}
	number, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the release: %w", err)
	}
	r.date = time.Unix(number, 0).UTC()
	if r.version == "" {
		r.version = "0.0.0-dev." + r.date.Format("20060102") + "." + hash
	}
	return nil
}

// program returns the path of the program for an architecture.
func (r *release) program(arch string) string {
	return filepath.Join(r.out, fmt.Sprintf("lockfs_%s_linux_%s", r.version, arch))
}

// build builds a static program without traces of the build machine.
func (r *release) build(program, arch string) error {
	if r.built != "" {
		content, err := os.ReadFile(r.built)
		if err != nil {
			return err
		}
		return os.WriteFile(program, content, 0o755)
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program,
		"-ldflags", "-s -w -buildid= -X lockfs/cmd/lockfs/internal/cli.version="+r.version, "./cmd/lockfs")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", arch, err)
	}
	return nil
}

// writeExtras runs the program to write the other files of the packages.
func (r *release) writeExtras() error {
	program := filepath.Join(r.extras, "lockfs")
	if err := r.build(program, runtime.GOARCH); err != nil {
		return err
	}
	for _, args := range [][]string{{"docs", "man", filepath.Join(r.extras, "man")}, {"docs", "units", filepath.Join(r.extras, "units")}} {
		if _, err := output(program, args...); err != nil {
			return err
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(program, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.extras, shell), []byte(script+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func output(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(string(said)), nil
}
