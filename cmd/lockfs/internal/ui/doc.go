// Package ui has the command that opens the page of a daemon in a browser.
package ui
