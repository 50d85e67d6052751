// Package cli has the parts that the commands of lockfs share: the program around them ([Main], [Root]),
// flags and their environment variables, exit codes, advice after an error, and output as text and JSON.
package cli
