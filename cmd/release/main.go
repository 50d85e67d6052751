// Command release makes what a release of lockfs consists of, in one directory: the static program for each architecture, packages for
// Debian and for systems with rpm, an OCI image as a file, what the programs are made of (SBOM), and the checksums of all.
//
//	.ci/release --version 1.2.3 --out /tmp/release
//
// Two runs on one commit make the same, byte by byte, with the same Go on any machine: everything bears the time of the commit (or
// SOURCE_DATE_EPOCH), and nothing tells where it was made. What packages have besides the program, the program itself writes (lockfs
// docs, lockfs completion), so that they cannot disagree.
//
// It is a module of its own, so that lockfs does not depend on what packages are made with.
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

// release is what is made in one go.
type release struct {
	version string
	date    time.Time // that everything bears
	archs   []string
	built   string // empty: programs are built
	out     string
	extras  string // directory of what packages have besides the program
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

// identify says which version this is, and of when: those of the commit, unless it is told.
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

// program is where the program for an architecture is.
func (r *release) program(arch string) string {
	return filepath.Join(r.out, fmt.Sprintf("lockfs_%s_linux_%s", r.version, arch))
}

// build builds a static program that does not tell where it was built.
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

// writeExtras has the program write what packages have besides it.
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
