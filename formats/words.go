package formats

import (
	"slices"
	"strings"
	"unicode"

	"lockfs/formats/lockfact"
)

// WordsOf tells what the words of a name say: that it is a lock, that it is data, or nothing. A word ends where letters end or
// an upper-case letter follows a lower-case one, so "LCK..ttyS0", "00LOCK-pkg" and "SingletonLock" say lock and "clock" does not.
func WordsOf(name string) lockfact.NameSays {
	if len(name) > maxName {
		return lockfact.NameSaysNothing
	}
	for _, prefix := range lockPrefixes {
		if strings.HasPrefix(name, prefix) {
			return lockfact.NameSaysLock
		}
	}
	lower := strings.ToLower(name)
	if dot := strings.LastIndexByte(lower, '.'); dataNames[lower] || dot >= 0 && dataEndings[lower[dot+1:]] {
		return lockfact.NameSaysData
	}
	if slices.ContainsFunc(words(name), func(word string) bool { return lockWords[word] }) {
		return lockfact.NameSaysLock
	}
	return lockfact.NameSaysNothing
}

// maxName is what a file system takes for a name, in bytes.
const maxName = 255

// lockWords are those that programs name their locks by.
var lockWords = setOf(
	"lock", "locks", "locked", "locking", "lockfile", "lockdir", "lck", "lok", "lk", "wlock", "flock", "filelock", "softlock", "parentlock", "lockmail", "rfl", "wfl",
	"pid", "pidfile", "mutex", "mtx", "sem", "semaphore", "running", "busy", "inuse", "leader", "owner", "holder", "claim", "claimed", "lease",
)

// lockPrefixes are how editors name the locks of the file with the rest of the name: Emacs, LibreOffice and Microsoft Office.
var lockPrefixes = []string{".#", ".~", "~$"}

// dataNames are those of data that has a word of a lock: the exact versions of what a project depends on. Others are of files that
// keep an empty directory.
var dataNames = setOf(
	"yarn.lock", "cargo.lock", "gemfile.lock", "flake.lock", "poetry.lock", "uv.lock", "pdm.lock", "pixi.lock", "pipfile.lock",
	"composer.lock", "podfile.lock", "cartfile.resolved", "mix.lock", "rebar.lock", "pubspec.lock", "bun.lock", "bun.lockb", "deno.lock", "chart.lock",
	"requirements.lock", "dune.lock", "paket.lock", "stack.yaml.lock", "package-lock.json", "pnpm-lock.yaml", "packages.lock.json", "project.lock.json",
	"conda-lock.yml", "lazy-lock.json", "gradle.lockfile", "buildscript-gradle.lockfile", ".terraform.lock.hcl", "devbox.lock", "devenv.lock", "mise.lock",
	"shard.lock", "berksfile.lock", "puppetfile.lock", "galaxy.lock", "gopkg.lock", "glide.lock", "pylock.toml", "renv.lock", "conan.lock", "vcpkg-lock.json",
	".gitkeep", ".keep", ".gitignore", ".gitattributes", ".hgkeep", ".placeholder", ".empty", ".dockerignore", ".npmignore", ".nojekyll", "py.typed",
)

// dataEndings are those of source code and documents, which are about locks where their names say so.
var dataEndings = setOf(
	"py", "pyi", "go", "c", "h", "cc", "cpp", "cxx", "hpp", "rs", "js", "mjs", "ts", "jsx", "tsx", "java", "kt", "rb", "php", "pl", "pm", "swift", "cs",
	"scala", "lua", "el", "vim", "m4", "sql", "proto", "html", "css", "md", "rst", "tex", "o", "a", "so", "pyc", "class",
)

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// words are those of a name, in lower case.
func words(name string) (found []string) {
	word := make([]rune, 0, 16)
	end := func() {
		if len(word) > 0 {
			found = append(found, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	before := ' '
	for _, r := range name {
		if !unicode.IsLetter(r) || unicode.IsLower(before) && unicode.IsUpper(r) {
			end()
		}
		if unicode.IsLetter(r) {
			word = append(word, r)
		}
		before = r
	}
	end()
	return found
}
