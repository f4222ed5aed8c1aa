package nfs3_test

import (
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.WaitBeside(8)
	os.Exit(fixture.Run(m))
}
