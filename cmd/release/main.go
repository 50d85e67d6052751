// Command release makes a release of lockfs in one directory: the static program for each architecture,
// packages for dpkg and rpm, an OCI image, a Helm chart, an Ansible role, lists of components (SBOM), and
// checksums. With an address and a key it adds a Homebrew formula and signed repositories for apt and dnf.
//
//	.ci/release --version 1.2.3 --out /tmp/release
//
// Two runs on one commit make the same bytes, apart from signatures, with the same Go on any machine: all
// files have the time of the commit (or SOURCE_DATE_EPOCH), and none has the place where it was made. The
// program itself writes the other files of the packages (lockfs docs, lockfs completion), so they agree with
// it. The chart has the manifests of lockfs docs kubernetes.
//
// It is a module of its own, so lockfs does not depend on the modules that make packages.
package main

import (
	_ "embed"
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

// usage is also printed by .ci/release, without building this command.
//
//go:embed usage.txt
var usage string

func main() {
	r := release{began: time.Now()}
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	archs := flag.String("arch", "amd64,arm64", "")
	flag.StringVar(&r.version, "version", "", "")
	flag.StringVar(&r.built, "built", "", "")
	flag.StringVar(&r.out, "out", "../../dist", "")
	flag.StringVar(&r.maintainer, "maintainer", "", "")
	flag.StringVar(&r.url, "url", "", "")
	flag.StringVar(&r.key, "sign", "", "")
	flag.Parse()
	r.url = strings.TrimSuffix(r.url, "/")
	if r.archs = strings.Split(*archs, ","); r.built != "" {
		r.archs = []string{runtime.GOARCH}
	}
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one release.
type release struct {
	version    string
	maintainer string    // of the packages
	date       time.Time // of all files
	archs      []string
	built      string // empty: programs are built
	out        string
	url        string // address of out once it is published; empty: unknown
	key        string // of gpg; empty: no repositories
	extras     string // directory with the other files of packages
	began      time.Time
}

// step prints the next step.
func (r *release) step(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "[%4.0f s] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
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
	if r.key != "" {
		if err := r.checkRepository(); err != nil {
			return err
		}
	}
	for _, arch := range r.archs {
		r.step("building lockfs %s for %s", r.version, arch)
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
	r.step("building lockfs for this machine, which writes man pages, completions and units")
	if err := r.writeExtras(); err != nil {
		return err
	}
	for _, arch := range r.archs {
		r.step("packing for dpkg and rpm on %s", arch)
		if err := r.writePackages(arch); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		name   string
		wanted bool
		write  func() error
	}{
		{"OCI image", true, r.writeImage},
		{"Helm chart", true, r.writeChart},
		{"Ansible role", true, r.writeRole},
		{"Homebrew formula", r.url != "", r.writeFormula},
		{"signed repositories for apt and dnf", r.key != "", r.writeRepository},
		{"checksums", true, r.writeSums},
	} {
		if !part.wanted {
			r.step("no %s: see --url and --sign", part.name)
			continue
		}
		r.step("writing the %s", part.name)
		if err := part.write(); err != nil {
			return err
		}
	}
	r.step("done: %s", r.out)
	return nil
}

// identify sets version, date and maintainer by the commit, unless they are given.
func (r *release) identify() error {
	commit, err := output("git", "log", "-1", "--format=%ct %h %an <%ae>")
	if err != nil {
		return err
	}
	seconds, commit, _ := strings.Cut(commit, " ")
	hash, author, _ := strings.Cut(commit, " ")
	if r.maintainer == "" {
		r.maintainer = author
	}
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
