// Package protocols shows that the published lock formats, the commands for them, and the holders they name mean on every host
// what their specifications say. What these print as scripts is in the folder scripts, unchanged.
package protocols

import (
	"os"
	"testing"

	"lockfs/test/testcluster"
)

func TestMain(m *testing.M) {

	os.Exit(testcluster.Main(m))
}
