package localfs_test

import (
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	os.Exit(fixture.Run(m))
}
