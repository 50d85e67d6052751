package formats

import (
	"slices"
	"strings"
	"unicode"

	"lockfs/formats/lockfact"
)

// WordsOf reports whether the words of a name indicate a lock, data, or neither. A word ends after its last
// letter, or before an upper-case letter after a lower-case one. So "LCK..ttyS0", "00LOCK-pkg" and
// "SingletonLock" indicate a lock, and "clock" does not.
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

// maxName is the maximum length of a name in a file system, in bytes.
const maxName = 255

// lockWords are words in the names of locks.
var lockWords = setOf(
	"lock", "locks", "locked", "locking", "lockfile", "lockdir", "lck", "lok", "lk", "wlock", "flock", "filelock", "softlock", "parentlock", "lockmail", "rfl", "wfl",
	"pid", "pidfile", "mutex", "mtx", "sem", "semaphore", "running", "busy", "inuse", "leader", "owner", "holder", "claim", "claimed", "lease",
)

// lockPrefixes begin the names of locks of editors: Emacs, LibreOffice and Microsoft Office. The rest names
// the edited file.
var lockPrefixes = []string{".#", ".~", "~$"}

// dataNames are names of data with a word of a lock: files with exact versions of dependencies. Others are
// names of files that keep an empty directory.
var dataNames = setOf(
	"yarn.lock", "cargo.lock", "gemfile.lock", "flake.lock", "poetry.lock", "uv.lock", "pdm.lock", "pixi.lock", "pipfile.lock",
	"composer.lock", "podfile.lock", "cartfile.resolved", "mix.lock", "rebar.lock", "pubspec.lock", "bun.lock", "bun.lockb", "deno.lock", "chart.lock",
	"requirements.lock", "dune.lock", "paket.lock", "stack.yaml.lock", "package-lock.json", "pnpm-lock.yaml", "packages.lock.json", "project.lock.json",
	"conda-lock.yml", "lazy-lock.json", "gradle.lockfile", "buildscript-gradle.lockfile", ".terraform.lock.hcl", "devbox.lock", "devenv.lock", "mise.lock",
	"shard.lock", "berksfile.lock", "puppetfile.lock", "galaxy.lock", "gopkg.lock", "glide.lock", "pylock.toml", "renv.lock", "conan.lock", "vcpkg-lock.json",
	".gitkeep", ".keep", ".gitignore", ".gitattributes", ".hgkeep", ".placeholder", ".empty", ".dockerignore", ".npmignore", ".nojekyll", "py.typed",
)

// dataEndings are of source code and documents. Their names may be about locks.
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

// words returns the words of a name in lower case.
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
