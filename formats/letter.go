package formats

func hasLetter(text string) bool {
	for i := range len(text) {
		if isLetter(text[i]) {
			return true
		}
	}
	return false
}

// inName reports whether host names may contain a byte. Bytes outside of ASCII count as letters.
func inName(c byte) bool { return inWord(c) || c == '-' || c == '.' }

func inWord(c byte) bool { return isDigit(c) || isLetter(c) }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }
