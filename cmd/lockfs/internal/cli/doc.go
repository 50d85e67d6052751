// Package cli is what the commands of lockfs have in common: the program around them ([Main], [Root]), flags, which are
// variables too, and what they default to, exit codes, advice after an error, and output for people and as JSON.
package cli
