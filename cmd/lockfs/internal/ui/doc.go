// Package ui has the command to open the page of a daemon in a browser.
package ui
