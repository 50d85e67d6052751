package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// formula is a formula of Homebrew, which runs on Linux too; lockfs needs Linux.
const formula = `class Lockfs < Formula
  desc "%s"
  homepage "%s"
  version "%s"
  license "MIT"

  depends_on :linux
%s
  def install
    bin.install Dir["lockfs_*"].first => "lockfs"
    generate_completions_from_executable(bin/"lockfs", "completion")
    system bin/"lockfs", "docs", "man", buildpath/"man"
    man1.install Dir["man/man1/*"]
    man7.install Dir["man/man7/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lockfs version")
  end
end
`

// writeFormula writes the formula for the programs of this release.
func (r *release) writeFormula() error {
	var sources strings.Builder
	for _, arch := range r.archs {
		content, err := os.ReadFile(r.program(arch))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		block := map[string]string{"amd64": "on_intel", "arm64": "on_arm"}[arch]
		if block == "" {
			return fmt.Errorf("formula: Homebrew does not know the architecture %s", arch)
		}
		fmt.Fprintf(&sources, "\n  %s do\n    url \"%s/%s\"\n    sha256 \"%s\"\n  end\n",
			block, r.url, filepath.Base(r.program(arch)), hex.EncodeToString(sum[:]))
	}
	text := fmt.Sprintf(formula, summary, r.url, r.version, sources.String())
	return os.WriteFile(filepath.Join(r.out, "lockfs.rb"), []byte(text), 0o644)
}
